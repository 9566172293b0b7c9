// npm run check: the one gate. Arguments name the parts to run (all without); --root names another tree.
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { existsSync } from "node:fs";

const { values, positionals } = parseArgs({ options: { root: { type: "string" } }, allowPositionals: true });
const root = resolve(values.root ?? fileURLToPath(new URL("../..", import.meta.url)));

if (existsSync(`${root}/node_modules`)) {
  const { PARTS } = await import("./parts.mjs");
  const chosen = positionals.length > 0 ? positionals : Object.keys(PARTS);
  const unknown = chosen.filter((name) => PARTS[name] === undefined);
  for (const name of unknown) console.error(`No part of the check is called '${name}'`);
  const results = await Promise.all(chosen.map((name) => runPart(name, PARTS[name])));
  const failed = results.filter((passed) => !passed).length;
  console.log(failed === 0 ? "check: ok" : `check: ${failed} of ${chosen.length} parts failed`);
  process.exitCode = failed === 0 ? 0 : 1;
} else {
  console.error("The packages are not installed yet. Run: npm ci");
  process.exitCode = 1;
}

/**
 * Runs one part and prints its line when it has ended. A part that breaks has failed.
 * @param {string} name
 * @param {import("./parts.mjs").Part | undefined} part
 * @returns {Promise<boolean>}
 */
async function runPart(name, part) {
  const started = performance.now();
  const findings = part === undefined ? ["unknown"] : await findingsOf(part);
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${findings.length === 0 ? "ok    " : "FAILED"} ${name.padEnd(10)} ${seconds} s`);
  for (const finding of findings) console.log(finding.replace(/^/gm, "    "));
  return findings.length === 0;
}

/**
 * @param {import("./parts.mjs").Part} part
 * @returns {Promise<string[]>}
 */
async function findingsOf(part) {
  try {
    return await part(root);
  } catch (error) {
    return [error instanceof Error ? (error.stack ?? error.message) : String(error)];
  }
}
