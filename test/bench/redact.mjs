/**
 * node test/bench/redact.mjs [--secretlint FOLDER]: what taking secrets out of a command costs, how many of the fake
 * ones of test/corpus/secrets.ts are found and how many innocent commands are not left alone. With a folder where
 * `npm install @secretlint/core @secretlint/secretlint-rule-preset-recommend` was done, the same for that.
 */
import { readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { bundled } from "../corpus/bundle.mjs";

const { values } = parseArgs({ options: { secretlint: { type: "string" } } });
const module = await bundled(join(import.meta.dirname, "redact-entry.ts"), import.meta.dirname);
/** @type {typeof import("./redact-entry.ts")} */
const { redact, FAKE_SECRETS, TOOL_SECRETS } = await import(pathToFileURL(module).href);
rmSync(module);
const innocent = ["innocent.txt", "tool-innocent.txt"].flatMap((name) =>
  readFileSync(join(import.meta.dirname, "../corpus", name), "utf8")
    .trimEnd()
    .split("\n"),
);
const daily = readFileSync(join(import.meta.dirname, "../corpus/daily.txt"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"));
const long = innocent
  .join("\n")
  .repeat(8)
  .slice(0, 64 * 1024);

await measure(
  "own rules",
  (text) => Promise.resolve(redact(text, "cmd").redacted.length),
  (text) => redact(text, "cmd"),
);
if (values.secretlint !== undefined) {
  const find = await secretlint(values.secretlint);
  await measure("secretlint", find, undefined);
}

/**
 * @param {string} name
 * @param {(text: string) => Promise<number>} count
 * @param {((text: string) => unknown) | undefined} plain the same without a promise, for the time
 */
async function measure(name, count, plain) {
  const missed = [];
  const secrets = [...FAKE_SECRETS, ...TOOL_SECRETS];
  for (const { kind, command } of secrets) if ((await count(command)) === 0) missed.push(kind);
  const wrong = [];
  for (const command of innocent) if ((await count(command)) > 0) wrong.push(command);
  process.stdout.write(
    `${name}: finds ${secrets.length - missed.length} of ${secrets.length}, takes ${wrong.length} of ${innocent.length} innocent commands for some\n`,
  );
  const run = plain ?? count;
  const usual = await timed(daily, 20, run);
  const short = await timed(innocent, 20, run);
  const big = await timed([long], 20, run);
  const micros = (/** @type {number} */ ms) => (ms * 1000).toFixed(1);
  process.stdout.write(
    `  ${micros(usual)} µs for a usual command, ${micros(short)} µs for one that speaks of secrets, ${big.toFixed(1)} ms for 64 KiB of those, of processor time\n`,
  );
  if (missed.length > 0) process.stdout.write(`  misses ${missed.join(", ")}\n`);
  for (const command of wrong) process.stdout.write(`  takes ${command}\n`);
}

/** Milliseconds of processor time for each text. @param {readonly string[]} texts @param {number} rounds @param {(text: string) => unknown} run */
async function timed(texts, rounds, run) {
  for (const text of texts) await run(text);
  const begin = process.cpuUsage();
  for (let round = 0; round < rounds; round += 1) for (const text of texts) await run(text);
  const { user, system } = process.cpuUsage(begin);
  return (user + system) / 1000 / rounds / texts.length;
}

/** @param {string} folder @returns {Promise<(text: string) => Promise<number>>} */
async function secretlint(folder) {
  const find = createRequire(join(folder, "package.json"));
  const { lintSource } = await import(pathToFileURL(find.resolve("@secretlint/core")).href);
  const { creator } = await import(
    pathToFileURL(find.resolve("@secretlint/secretlint-rule-preset-recommend")).href
  );
  const config = { rules: [{ id: "@secretlint/secretlint-rule-preset-recommend", rule: creator }] };
  return async (text) => {
    const source = { filePath: "/cmd.sh", content: text, ext: ".sh", contentType: "text" };
    const result = await lintSource({ source, options: { config } });
    return result.messages.length;
  };
}
