import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Verdicts, verdictsOfCorpus } from "../corpus/verdicts.ts";

const CHECKOUT = join(import.meta.dirname, "../..");
const RECORDED = JSON.parse(readFileSync(join(CHECKOUT, "test/corpus/verdicts.json"), "utf8")) as Verdicts;

test("every command of the corpus gets the verdicts that were recorded, by default, strict and claude-code", () => {
  const now = verdictsOfCorpus(CHECKOUT);
  expect(Object.keys(now).length).toBeGreaterThanOrEqual(1000);
  const changed = Object.entries(now)
    .filter(([text, verdicts]) => JSON.stringify(verdicts) !== JSON.stringify(RECORDED[text]))
    .map(
      ([text, verdicts]) =>
        `${text}: ${RECORDED[text]?.join(", ") ?? "never recorded"} → ${verdicts.join(", ")}`,
    );
  expect(changed, "node test/corpus/record-verdicts.mjs records them anew").toEqual([]);
  expect(Object.keys(RECORDED).length).toBe(Object.keys(now).length);
});
