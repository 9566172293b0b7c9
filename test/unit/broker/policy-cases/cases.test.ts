import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { judgeCase } from "../../../../broker/policy-cases/judge-case.ts";
import { parseCase, type CaseKind } from "../../../../broker/policy-cases/parse-case.ts";
import { readCases } from "../../../../broker/policy-cases/read-cases.ts";
import { loadPolicy, parsePolicy } from "../../../../broker/policy/index.ts";

const POLICIES = join(import.meta.dirname, "../../../../policies");
const NAMES = readdirSync(POLICIES)
  .filter((name) => name.endsWith(".yaml"))
  .map((name) => name.replace(".yaml", ""));

test("every shipped policy has cases, and all cases belong to a shipped policy", () => {
  expect(readdirSync(join(POLICIES, "cases")).sort()).toEqual([...NAMES].sort());
});

/** A policy keeps the cases of the one that it starts from as well. */
function foldersOf(name: string): readonly string[] {
  const base = /^extends: (.+)$/m.exec(readFileSync(join(POLICIES, `${name}.yaml`), "utf8"))?.[1];
  return [name, ...(base === undefined ? [] : foldersOf(base))];
}

describe.each(NAMES)("the shipped policy %s", (name) => {
  const found = foldersOf(name).map((each) => readCases(join(POLICIES, "cases", each)));
  const [cases, problems] = [found.flatMap((each) => each.cases), found.flatMap((each) => each.problems)];

  test("has nothing among its cases that is none, and cases of both kinds", () => {
    expect(problems).toEqual([]);
    expect(new Set(cases.map(({ kind }) => kind))).toEqual(new Set(["ALLOW", "DENY"]));
  });

  test.each(cases.map((one) => [one.place.slice(POLICIES.length + 7), one] as const))("%s", (_name, one) => {
    const loaded = loadPolicy(join(POLICIES, `${name}.yaml`), POLICIES);
    if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
    const { kept, expected, received } = judgeCase(loaded.ok, one);
    expect(kept ? expected : received).toBe(expected);
  });
});

describe("a case", () => {
  const policy = (mode: string) => {
    const text = `id: p\nname: P\nmode: ${mode}\ncommands: { denied: ["rm *"], warn: ["ls *"] }`;
    const loaded = parsePolicy(text, "p.yaml");
    if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
    return loaded.ok;
  };
  const caseOf = (text: string, kind: CaseKind = "DENY") => {
    const parsed = parseCase(text, "cases/p/x.yaml", kind);
    if ("problems" in parsed) throw new Error(parsed.problems.map((problem) => problem.text).join("\n"));
    return parsed.ok;
  };
  const rule = "rule: { list: commands.denied, pattern: 'rm *' }";

  test("that expects deny is kept in both modes, one that expects would_deny in observe mode alone", () => {
    const plain = caseOf(`command: rm x\nverdict: deny\n${rule}`);
    const observed = caseOf(`command: rm x\nverdict: would_deny\n${rule}`);
    expect(judgeCase(policy("enforce"), plain).kept).toBe(true);
    expect(judgeCase(policy("observe"), plain).kept).toBe(true);
    expect(judgeCase(policy("observe"), observed).kept).toBe(true);
    expect(judgeCase(policy("enforce"), observed).kept).toBe(false);
  });

  test.each([
    ["another verdict", "command: ls; rm x\nverdict: ask\nrule: { list: commands.denied, pattern: 'rm *' }"],
    ["another pattern", "command: rm x\nverdict: deny\nrule: { list: commands.denied, pattern: 'rm x' }"],
    ["another list", "command: rm x\nverdict: deny\nrule: { list: commands.ask, pattern: 'rm *' }"],
    [
      "another fragment",
      "command: ls; rm x\nverdict: deny\nrule: { list: commands.denied, pattern: 'rm *', fragment: ls }",
    ],
    ["no rule", "command: rm x\nverdict: deny\nrule: null"],
    ["no warning", `command: ls; rm x\nverdict: deny\n${rule}\nwarns: []`],
  ])("that expects %s is not kept, and says what came", (_what, text) => {
    const { kept, received } = judgeCase(policy("enforce"), caseOf(text));
    expect(kept).toBe(false);
    expect(received).toContain("deny: 'rm *' in commands.denied about 'rm x', p.yaml:4");
  });

  test("is read as an argument list or in bash where it says so", () => {
    expect(judgeCase(policy("enforce"), caseOf(`argv: [rm, x]\nverdict: deny\n${rule}`)).kept).toBe(true);
    expect(
      judgeCase(policy("enforce"), caseOf('argv: ["echo", "; rm x"]\nverdict: allow\nrule: null', "ALLOW"))
        .kept,
    ).toBe(true);
  });

  test.each([
    [
      "command: ls\nverdict: deny\nrule: null",
      "ALLOW",
      "cases/p/x.yaml:2:1: A case in ALLOW cannot expect 'deny'",
    ],
    [
      "command: ls\nverdict: isolate\nrule: null",
      "DENY",
      "cases/p/x.yaml:2:1: A case in DENY cannot expect 'isolate'",
    ],
    ["command: ls\nverdict: allow", "ALLOW", "cases/p/x.yaml:1:1: Field 'rule' is required"],
    ["command: [ls\n", "ALLOW", "cases/p/x.yaml:2:1: "],
  ] as const)("that is none is told with line and column: %j in %s", (text, kind, says) => {
    const parsed = parseCase(text, "cases/p/x.yaml", kind);
    expect("problems" in parsed ? parsed.problems[0]?.text : "").toContain(says);
  });
});
