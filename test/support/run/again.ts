import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestCase, Vitest } from "vitest/node";

/** A race that one of six runs loses is seen in eight of them with a probability of three quarters. */
const TIMES = 8;

/** More than these are no busy moment: they are not repeated. */
export const MOST_REPEATED = 3;

const VITEST = fileURLToPath(new URL("../../../node_modules/vitest/vitest.mjs", import.meta.url));

/** Runs a test alone, up to `TIMES` times, and says whether it passed each time. */
export async function holdsAlone(test: TestCase, { config, vite }: Vitest): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "substrate-again-"));
  const report = join(folder, "report.json");
  // Vitest prints the suites of a test with " > " between them, and compares them with a space. A title may have a " > " too.
  const escaped = test.fullName.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
  const { configFile } = vite.config;
  const args = [
    ...["run", test.module.moduleId, "--root", config.root],
    ...["--testNamePattern", `^${escaped.replaceAll(" > ", "(?: > | )")}$`],
    ...["--retry=0", "--maxWorkers=1", "--reporter=json", "--outputFile", report],
    ...(configFile === undefined ? [] : ["--config", configFile]),
  ];
  const env = {
    ...process.env,
    SUBSTRATE_TEST_RETRY: undefined,
    SUBSTRATE_TEST_SKIPS: join(folder, "skips.jsonl"),
    VITEST: undefined,
  };
  try {
    for (let time = 0; time < TIMES; time += 1) {
      rmSync(report, { force: true });
      // Not spawnSync: Vitest is ending its workers meanwhile.
      const [status] = await once(
        spawn(process.execPath, [VITEST, ...args], { env, stdio: "ignore" }),
        "close",
      );
      // Vitest ends well, too, where no test has the name.
      if (status !== 0 || passedIn(report) !== 1) return false;
    }
    return true;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function passedIn(report: string): number {
  const { numPassedTests } = JSON.parse(readFileSync(report, "utf8")) as { readonly numPassedTests: number };
  return numPassedTests;
}
