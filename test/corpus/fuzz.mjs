/**
 * Runs made texts in dash and bash and says which programs started that the reader did not name.
 * Usage: node test/corpus/fuzz.mjs [--seed N] [--first N] [--count N] [--batch N]. Exit 1 when there was a miss.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { bundled } from "./bundle.mjs";

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    first: { type: "string", default: "0" },
    count: { type: "string", default: "10000" },
    batch: { type: "string", default: "2000" },
  },
});
const seed = Number(values.seed);
const first = Number(values.first);
const count = Number(values.count);
const batch = Number(values.batch);
const say = (/** @type {string} */ line) => process.stdout.write(`${line}\n`);
const file = await bundled(join(import.meta.dirname, "fuzz.ts"), import.meta.dirname);
try {
  /** @type {typeof import("./fuzz.ts")} */
  const { fuzz, fuzzRoot } = await import(file);
  const root = fuzzRoot();
  if (typeof root === "string") throw new Error(`Cannot run texts: ${root}`);
  try {
    const all = { texts: 0, ran: 0, opaque: 0, misses: 0 };
    for (let at = first; at < first + count; at += batch) {
      const part = fuzz(root, seed, at, Math.min(batch, first + count - at));
      for (const miss of part.misses) say(`MISS ${JSON.stringify(miss)}`);
      all.texts += part.texts;
      all.ran += part.ran;
      all.opaque += part.opaque;
      all.misses += part.misses.length;
      say(`seed ${seed}: ${JSON.stringify(all)}`);
    }
    process.exitCode = all.misses === 0 ? 0 : 1;
  } finally {
    root.remove();
  }
} finally {
  rmSync(file, { force: true });
}
