/**
 * Writes verdicts.json: what the shipped policies say of each command of the corpus. Usage: node test/corpus/record-verdicts.mjs
 * Look at the diff before it is committed: each changed line is a command that people's agents get another answer to.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { bundled } from "./bundle.mjs";

const folder = import.meta.dirname;
const file = await bundled(join(folder, "verdicts.ts"), folder);
try {
  const { recordVerdicts } = await import(file);
  recordVerdicts(join(folder, "../.."), join(folder, "verdicts.json"));
} finally {
  rmSync(file, { force: true });
}
