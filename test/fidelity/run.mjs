/**
 * npm run fidelity [-- --bare] [-- -t "a name"]: every workload, as root and as an ordinary user; prints the table and its
 * counts, and ends with 1 while anything is different. `--bare` runs each twice outside every world instead: what differs
 * then is a workload that does not do the same twice, and proves nothing.
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { journey, runNode } from "../../api/setup/journey.mjs";
import { EVERYTHING, setUp } from "../../api/setup/set-up.mjs";
import { VITEST } from "../../api/setup/vitest.mjs";

const { values } = parseArgs({
  options: { bare: { type: "boolean", default: false }, testNamePattern: { type: "string", short: "t" } },
});

await journey(async () => {
  await setUp(EVERYTHING);
  const report = join(tmpdir(), `substrate-fidelity-${process.pid}.txt`);
  process.env["SUBSTRATE_FIDELITY"] = values.bare ? "bare" : "all";
  process.env["SUBSTRATE_FIDELITY_REPORT"] = report;
  const chosen = values.testNamePattern === undefined ? [] : ["-t", values.testNamePattern];
  const code = await runNode([...VITEST, "test/fidelity/fidelity.test.ts", ...chosen]);
  // Once more after all that vitest says about the same differences.
  if (existsSync(report)) process.stdout.write(readFileSync(report, "utf8"));
  rmSync(report, { force: true });
  return code;
});
