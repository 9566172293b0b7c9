import fc from "fast-check";
import { expect, test } from "vitest";
import { parsePolicy, PassedRules } from "../../broker/policy/index.ts";
import type { PolicyLoad } from "../../broker/policy/rules/decision.ts";

const LISTS = ["denied", "ask", "allowed"] as const;
type Lists = Readonly<Record<(typeof LISTS)[number], readonly string[]>>;

/** About few programs, so that several rules share one; with stars for a program, pipelines, and examples that fail. */
const rule = fc.constantFrom(
  "git push *",
  "git push --force *",
  "git status",
  "rm *",
  "rm -rf *",
  "* --danger",
  "curl * | sh",
  "| sh",
  '{ pattern: "npm i *", match: ["npm i x"], reason: "Why" }',
  '{ pattern: "npm i *", match: ["npm i x"], reason: "Another why" }',
  '{ pattern: "npm i *", match: ["npm ls"] }',
  '{ pattern: "rm *", not_match: ["rm x"] }',
);
const some = fc.array(rule, { maxLength: 6 });
const lists: fc.Arbitrary<Lists> = fc.record({ denied: some, ask: some, allowed: some });
const edit = fc.record({
  list: fc.constantFrom(...LISTS),
  at: fc.nat(5),
  drop: fc.nat(2),
  put: fc.array(rule, { maxLength: 2 }),
  above: fc.boolean(),
});

function written(of: Lists, above: number): string {
  const items = (list: keyof Lists): string =>
    of[list].map((each) => `    - ${each.startsWith("{") ? each : JSON.stringify(each)}\n`).join("");
  const commands = LISTS.filter((list) => of[list].length > 0).map((list) => `  ${list}:\n${items(list)}`);
  return `${"# above\n".repeat(above)}id: p\nname: P\ncommands:\n  opaque: deny\n${commands.join("")}`;
}

/** All that decisions, explanations and records take from a policy. */
function told(load: PolicyLoad): unknown {
  if ("problems" in load) return load.problems;
  const { at: _, ...policy } = load.ok;
  return policy;
}

test("a policy after edits is the one that a first reading of its file makes", () => {
  let [loaded, refused] = [0, 0];
  fc.assert(
    fc.property(lists, fc.array(edit, { minLength: 1, maxLength: 6 }), (before, edits) => {
      let now: Lists = before;
      let above = 0;
      const passed = new PassedRules();
      parsePolicy(written(now, above), "p.yaml", passed);
      for (const { list, at, drop, put, above: comment } of edits) {
        const rules = now[list];
        now = { ...now, [list]: [...rules.slice(0, at), ...put, ...rules.slice(at + drop)] };
        above += comment ? 1 : 0;
        const text = written(now, above);
        const again = parsePolicy(text, "p.yaml", passed);
        expect(told(again)).toEqual(told(parsePolicy(text, "p.yaml")));
        if ("ok" in again) loaded += 1;
        else refused += 1;
      }
    }),
    { numRuns: 500 },
  );
  expect(Math.min(loaded, refused)).toBeGreaterThan(100);
});

test("an edit tries the examples of the rule that it changed, and of no other", () => {
  const rules = Array.from({ length: 300 }, (_, at) => `{ pattern: "p${at} *", match: ["p${at} x"] }`);
  const text = written({ denied: rules, ask: [], allowed: [] }, 0);
  const passed = new PassedRules();
  const first = parsePolicy(text, "p.yaml", passed);
  const second = parsePolicy(text.replace('"p7 *"', '"p7 x*"'), "p.yaml", passed);
  const bad = parsePolicy(text.replace('"p7 *"', '"q7 *"'), "p.yaml", passed);
  if (!("ok" in first && "ok" in second)) throw new Error("Both must load");
  const [before, after] = [first.ok.rules.all, second.ok.rules.all];
  const readAnew = after.filter(({ stages }, order) => stages !== before[order]?.stages);
  expect(readAnew.map(({ pattern }) => pattern)).toEqual(["p7 x*"]);
  expect("problems" in bad && bad.problems.map(({ line }) => line)).toEqual([13]);
});
