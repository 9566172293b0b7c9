import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readShell } from "../../../../broker/policy/index.ts";
import { corpus } from "../../../corpus/commands.ts";
import { type Recorded, shortcomings } from "../../../corpus/compare.ts";
import { type Verdicts, verdictsOfCorpus } from "../../../corpus/verdicts.ts";

const FOLDER = join(import.meta.dirname, "../../../corpus");
const RECORDED = JSON.parse(readFileSync(join(FOLDER, "executed.json"), "utf8")) as Recorded;
const COMMANDS = corpus();

describe("what dash and bash ran of a command is what the reader says", () => {
  test("of 800 commands at least, each of them once", () => {
    expect(COMMANDS.length).toBeGreaterThanOrEqual(800);
    expect(new Set(COMMANDS.map(({ text }) => text)).size).toBe(COMMANDS.length);
    expect(Object.keys(RECORDED.commands).sort()).toEqual(COMMANDS.map(({ text }) => text).sort());
  });

  const groups = [...new Set(COMMANDS.map(({ group }) => group))];
  test.each(groups)("%s", (group) => {
    const commands = COMMANDS.filter((command) => command.group === group);
    const wrong = commands.flatMap((command) =>
      shortcomings(command, RECORDED.commands[command.text] ?? null, readShell),
    );
    expect(wrong).toEqual([]);
  });
});

test("the comparison notices a command that is not read", () => {
  const [command] = COMMANDS.filter(({ text }) => text === "sh -c 'rm x'");
  if (command === undefined) throw new Error("The corpus has lost the command that this test is about");
  const executed = RECORDED.commands[command.text] ?? null;
  const blind = () => readShell("sh -c :");
  expect(shortcomings(command, executed, blind)).not.toEqual([]);
  expect(shortcomings(command, executed, () => readShell("sh -c 'rm y'"))).not.toEqual([]);
  expect(shortcomings(command, executed, () => readShell("$x"))).not.toEqual([]);
  expect(shortcomings(command, executed, readShell)).toEqual([]);
});

const CHECKOUT = join(import.meta.dirname, "../../../..");
const RECORDED_VERDICTS = JSON.parse(
  readFileSync(join(CHECKOUT, "test/corpus/verdicts.json"), "utf8"),
) as Verdicts;

test("every command of the corpus gets the verdicts that were recorded, by default, strict and claude-code", () => {
  const now = verdictsOfCorpus(CHECKOUT);
  expect(Object.keys(now).length).toBeGreaterThanOrEqual(1000);
  const changed = Object.entries(now)
    .filter(([text, verdicts]) => JSON.stringify(verdicts) !== JSON.stringify(RECORDED_VERDICTS[text]))
    .map(
      ([text, verdicts]) =>
        `${text}: ${RECORDED_VERDICTS[text]?.join(", ") ?? "never recorded"} → ${verdicts.join(", ")}`,
    );
  expect(changed, "node test/corpus/record-verdicts.mjs records them anew").toEqual([]);
  expect(Object.keys(RECORDED_VERDICTS).length).toBe(Object.keys(now).length);
});
