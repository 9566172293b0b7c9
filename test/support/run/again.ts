import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestCase, Vitest } from "vitest/node";

/** A race that one of six runs loses is seen in eight of them with a probability of three quarters. */
const TIMES = 8;

/** More than these are no busy moment: they are not repeated. */
export const MOST_REPEATED = 3;

const VITEST = fileURLToPath(new URL("../../../node_modules/vitest/vitest.mjs", import.meta.url));

/** Runs a test once with its file and then up to `TIMES` times alone, and says whether it passed each time. */
export async function holdsAlone(test: TestCase, { config, vite }: Vitest): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "substrate-again-"));
  const report = join(folder, "report.json");
  // Vitest prints the suites of a test with " > " between them, and compares them with a space. A title may have a " > " too.
  const escaped = test.fullName.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
  const pattern = `^${escaped.replaceAll(" > ", "(?: > | )")}$`;
  const { configFile } = vite.config;
  const args = [
    ...["run", test.module.moduleId, "--root", config.root],
    ...["--retry=0", "--maxWorkers=1", "--reporter=json", "--outputFile", report],
    ...(configFile === undefined ? [] : ["--config", configFile]),
  ];
  const env = {
    ...process.env,
    SUBSTRATE_TEST_RETRY: undefined,
    SUBSTRATE_TEST_SKIPS: join(folder, "skips.jsonl"),
    VITEST: undefined,
  };
  // The whole file first: the test may fail because of what other tests of the file leave.
  const runs = [[], ...Array.from({ length: TIMES }, () => ["--testNamePattern", pattern])];
  try {
    for (const more of runs) {
      rmSync(report, { force: true });
      // Not spawnSync: Vitest is ending its workers meanwhile.
      await once(spawn(process.execPath, [VITEST, ...args, ...more], { env, stdio: "ignore" }), "close");
      if (!hasPassed(report, new RegExp(pattern))) return false;
    }
    return true;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

type Report = {
  readonly testResults: readonly {
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
};

/** Not by the exit code: Vitest ends well, too, where no test has the name, and a neighbour may fail. */
function hasPassed(report: string, pattern: RegExp): boolean {
  if (!existsSync(report)) return false;
  const { testResults } = JSON.parse(readFileSync(report, "utf8")) as Report;
  const own = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ fullName }) => pattern.test(fullName));
  return own.length > 0 && own.every(({ status }) => status === "passed");
}
