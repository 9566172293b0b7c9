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
  { weight: 1, arbitrary: line },
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

/** Everything a file says, or its problems, with the place of each part. */
function told(read: ReturnType<typeof readYaml>): unknown {
  return "problems" in read
    ? read.problems
    : { value: read.value, places: [...places(read, read.value, [])] };
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
      fc.property(file, fc.array(edit, { minLength: 1, maxLength: 4 }), (before, edits) => {
        let known = readYaml(before.join("\n"));
        let now = before;
        for (const { at, drop, put, last } of edits) {
          now = [...now.slice(0, at), ...put, ...now.slice(at + drop)];
          const text = now.join("\n") + (last ? "\n" : "");
          const whole = readYaml(text);
          const after = readYaml(text, "problems" in known ? null : known);
          if (!("problems" in after) && after.isPart) partly += 1;
          expect(told(after)).toEqual(told(whole));
          if (!("problems" in after)) known = after;
        }
      }),
      { numRuns: 2_000 },
    );
    expect(partly).toBeGreaterThan(300);
  });
});
