import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readYaml, type YamlFile } from "../../broker/policy/yaml-file.ts";

/** Lines that end lists, open what the next line closes, or mean something to YAML beyond themselves. */
const LINES = [
  "commands:",
  "  denied:",
  "  ask:",
  "fs:",
  "  - a",
  "  - b c",
  "    - a",
  '    - "x *"',
  "    - { pattern: a, match: [b] }",
  "    - pattern: a",
  "      match: [b, c]",
  "      match:",
  "        - one",
  "        - two",
  "      reason: |",
  "        text",
  "      reason: >+",
  "",
  "      - deeper",
  "    -",
  "    - - nested",
  "    - |",
  "     text",
  "    - |2+",
  "    - 'open",
  "      closed'",
  '    - "open',
  '      closed"',
  "    - [a,",
  "      b]",
  "    - plain",
  "      goes on",
  "    # a comment",
  "  # a comment further out",
  "        # a comment further in",
  "    - a # with a comment",
  "    - &anchor a",
  "    - *anchor",
  "    - !!str 1",
  "    - ? a",
  "    - null",
  "    - \tx",
  "    - a\r",
  "- a",
  "---",
  "...",
  "%YAML 1.1",
  "    - yes",
  "    - 1",
  "    - \u2028",
  "    - 𝒳",
  "   - a",
  "     - a",
  "    -a",
  "    - a: 1",
  "      a: 2",
  "      b: 2",
] as const;

const line = fc.constantFrom(...LINES);
const lines = fc.array(line, { maxLength: 6 });
/** Items as policies have them, and now and then a line that means something else. */
const item = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.constantFrom(...LINES).filter((text) => /^ {4}- (a|"x|\{|plain|null|yes|1)/.test(text)),
  },
  {
    weight: 4,
    arbitrary: fc.constantFrom(
      "    - pattern: a\n      match: [b]",
      "    - |\n      text\n",
      "    - 'a\n      b'",
    ),
  },
  { weight: 3, arbitrary: line },
);
const file = fc
  .array(item, { maxLength: 8 })
  .map((items) => [
    "id: x",
    "commands:",
    "  denied:",
    "    - first",
    ...items,
    "  ask:",
    "    - last",
    "fs: {}",
  ]);
const put = fc.oneof(
  { weight: 5, arbitrary: fc.array(item, { maxLength: 4 }) },
  { weight: 1, arbitrary: lines },
);
const edit = fc.record({ at: fc.integer({ min: 2, max: 14 }), drop: fc.nat(3), put, last: fc.boolean() });

/** A change within lines: some characters are gone, and others are there. */
const scratch = fc.record({
  at: fc.nat(400),
  drop: fc.nat(6),
  put: fc.array(fc.constantFrom("\n", " ", "-", "a", "    - b\n", "#", ":", '"', "'", "[", "|", "      "), {
    maxLength: 3,
  }),
});

/** As an editor replaces a word everywhere: other items in some lines, and as many lines as before, or nearly. */
const replaced = fc.array(
  fc.record({
    at: fc.integer({ min: 2, max: 14 }),
    put: fc.oneof({ weight: 9, arbitrary: item }, { weight: 1, arbitrary: line }),
  }),
  { minLength: 2, maxLength: 5 },
);

/** Everything a file says, or its problems, with the place of each part. */
function told(read: ReturnType<typeof readYaml>): unknown {
  return "problems" in read
    ? read.problems
    : { value: read.value, places: [...places(read, read.value, [])] };
}

type Changed = {
  readonly at: number;
  readonly drop: number;
  readonly put: readonly string[];
  readonly last: boolean;
};

function editedLines(
  before: readonly string[],
  change: Changed | readonly { readonly at: number; readonly put: string }[],
): string[] {
  if ("drop" in change)
    return [...before.slice(0, change.at), ...change.put, ...before.slice(change.at + change.drop)];
  return before.map((text, index) => change.find(({ at }) => at === index)?.put ?? text);
}

function scratchedText(
  text: string,
  { at, drop, put }: { at: number; drop: number; put: readonly string[] },
): string {
  const from = at % (text.length + 1);
  return text.slice(0, from) + put.join("") + text.slice(from + drop);
}

function* places(read: YamlFile, value: unknown, path: readonly (string | number)[]): Generator<unknown> {
  yield [path.join("."), read.positionOf(path)];
  if (typeof value !== "object" || value === null) return;
  const isList = Array.isArray(value);
  for (const [key, part] of Object.entries(value))
    yield* places(read, part, [...path, isList ? Number(key) : key]);
}

describe("a policy file that was edited", () => {
  test("says the same as when it is read for the first time, whatever was edited", () => {
    let partly = 0;
    fc.assert(
      fc.property(
        file,
        fc.array(fc.tuple(fc.oneof(edit, replaced), fc.option(scratch)), { minLength: 1, maxLength: 4 }),
        (before, edits) => {
          let known = readYaml(before.join("\n"));
          let now = before;
          for (const [change, scratched] of edits) {
            now = editedLines(now, change);
            const written = now.join("\n") + ("last" in change && change.last ? "\n" : "");
            const text = scratched === null ? written : scratchedText(written, scratched);
            const whole = readYaml(text);
            const after = readYaml(text, "problems" in known ? null : known);
            if (!("problems" in after) && after.isPart) partly += 1;
            expect(told(after)).toEqual(told(whole));
            if (!("problems" in after)) known = after;
          }
        },
      ),
      { numRuns: 3_000 },
    );
    expect(partly).toBeGreaterThan(50);
  });

  test.each([
    ["an item that takes the next one in", ["    - a"], ["    -", "#|", "      text", "    - b"]],
    ["a comment that a block of text before it takes in", ["    - |", "      text"], ["        # deeper"]],
    ["a line that a plain word before it takes in", ["    - plain"], ["      goes on"]],
    ["a line that ends the list", ["    - a"], ["fs:", "  - b"]],
    ["the end of the document", ["    - a"], ["..."]],
    ["an anchor that nothing names", ["    - a"], ["    - &here b"]],
    ["a name without its anchor", ["    - a"], ["    - *here"]],
    ["a key twice", ["    - a"], ["    - { a: 1, a: 2 }"]],
  ])("%s is read as in the whole", (_what, items, added) => {
    const head = ["id: x", "commands:", "  denied:", "    - first", ...items];
    const before = readYaml([...head, "    - last", "  ask: []", ""].join("\n"));
    if ("problems" in before) throw new Error("It must be YAML");
    for (const lines of [
      [...added, "    - last"],
      ["    - last", ...added],
      ["    - last", "    - b", ...added],
    ]) {
      const text = [...head, ...lines, "  ask: []", ""].join("\n");
      expect(told(readYaml(text, before))).toEqual(told(readYaml(text)));
    }
  });

  test.each([
    ["several rules", (text: string) => text.replaceAll(/rule(\d*)7/g, "other$17 and more")],
    ["rules and the words of one in several lines", (text: string) => text.replaceAll("7", "seven")],
    ["the first and the last", (text: string) => text.replace("rule0", "zero").replace("rule99", "last")],
  ])("in which %s changed is read in part", (_what, change) => {
    const items = Array.from({ length: 100 }, (_each, at) => `    - rule${at}\n`).join("");
    const more = "    - pattern: a7\n      match:\n        - b\n        - a7\n";
    const text = `id: x\ncommands:\n  denied:\n${items}${more}  ask: []\n`;
    const before = readYaml(text);
    if ("problems" in before) throw new Error("It must be YAML");
    const after = readYaml(change(text), before);
    expect(after).toMatchObject({ isPart: true });
    expect(told(after)).toEqual(told(readYaml(change(text))));
  });

  test("that has one more rule is read in part", () => {
    const before = readYaml('id: x\ncommands:\n  denied:\n    - "a *"\n    - "b *"\n  ask: []\n');
    if ("problems" in before) throw new Error("It must be YAML");
    const after = readYaml(
      'id: x\ncommands:\n  denied:\n    - "a *"\n    - new\n    - "b *"\n  ask: []\n',
      before,
    );
    expect(after).toMatchObject({ isPart: true, value: { commands: { denied: ["a *", "new", "b *"] } } });
  });
});
