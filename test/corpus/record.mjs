/**
 * Writes executed.json: what dash and bash of this machine ran of each command. Usage: node test/corpus/record.mjs
 * Needs a C compiler, and root or user namespaces. Look at the diff before it is committed.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { bundled } from "./bundle.mjs";

const folder = import.meta.dirname;
const file = await bundled(join(folder, "record.ts"), folder);
try {
  const { record } = await import(file);
  record(join(folder, "executed.json"));
} finally {
  rmSync(file, { force: true });
}
