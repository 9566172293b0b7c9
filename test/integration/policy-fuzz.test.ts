import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readShell } from "../../broker/policy/index.ts";
import { compareTexts, fuzz, fuzzRoot, type Miss } from "../corpus/fuzz.ts";
import { skip } from "../support/run/skips.ts";

const MINUTES = 10 * 60_000;
/** Half a minute. The same in each run: more of them find nothing new until the reader changes, and then `node test/corpus/fuzz.mjs` makes others. */
const TEXTS = 1000;
/**
 * The same texts in each run, so that a failure is a change of the reader's: new ones still show some misses, and are looked for
 * with `node test/corpus/fuzz.mjs --seed SEED`, or here with SUBSTRATE_FUZZ_SEED=SEED.
 */
const SEED = Number(process.env["SUBSTRATE_FUZZ_SEED"] ?? 20780);
/** Texts of earlier runs of which something started that the reader did not name. */
const FOUND = JSON.parse(
  readFileSync(join(import.meta.dirname, "../corpus/found.json"), "utf8"),
) as readonly string[];

const root = fuzzRoot();
afterAll(() => {
  if (typeof root !== "string") root.remove();
});

test("nothing starts in dash or bash, of a text that was made, that the reader does not name", {
  timeout: MINUTES,
}, () => {
  if (typeof root === "string") {
    skip("that made texts are read as this machine's shells run them", root);
    return;
  }
  const result = fuzz(root, SEED, 0, TEXTS);
  process.stdout.write(
    `made texts: seed ${SEED}, ${result.texts} texts, ${result.ran} started something, ${result.opaque} opaque\n`,
  );
  expect(shown(result.misses), `node test/corpus/fuzz.mjs --seed ${SEED} --count ${TEXTS}`).toEqual([]);
  // Texts of which nothing starts, or that are opaque, prove nothing.
  expect(result.ran).toBeGreaterThan(TEXTS / 3);
  expect(result.opaque).toBeLessThan((TEXTS * 2) / 3);
});

test("nor of a text of which something once did", { timeout: MINUTES }, () => {
  if (typeof root === "string") {
    skip("that texts which were once misread are read as this machine's shells run them", root);
    return;
  }
  expect(FOUND.length).toBeGreaterThan(10);
  expect(shown(compareTexts(root, FOUND).misses)).toEqual([]);
});

test("a reader that overlooks one program is noticed", { timeout: MINUTES }, () => {
  if (typeof root === "string") {
    skip("that a reader which overlooks a program is noticed", root);
    return;
  }
  const blind = (text: string, language?: "sh" | "bash") => readShell(text.replaceAll("p2", "p1"), language);
  const texts = ["p1; p2", "p1 $(p3)", "eval 'p2'"];
  const { misses } = compareTexts(root, texts, blind);
  expect(new Set(misses.map(({ text }) => text))).toEqual(new Set(["p1; p2", "eval 'p2'"]));
});

function shown(misses: readonly Miss[]): readonly string[] {
  return misses.map(
    ({ text, shell, calls }) => `${shell} ran ${JSON.stringify(calls)} of ${JSON.stringify(text)}`,
  );
}
