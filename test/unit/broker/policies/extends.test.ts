import { isRefusal } from "../../../../broker/model/refusal.ts";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { pathsOf, DENIED_READS } from "../../../../broker/policy/files/default-denials.ts";
import { Policies } from "../../../../broker/policies/policies.ts";
import { type CompiledPolicy, decide, loadPolicy, readShell } from "../../../../broker/policy/index.ts";

const ROOT = mkdtempSync(join(tmpdir(), "substrate-extends-"));
const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };
let own: string;
let shipped: string;
let runs = 0;

beforeEach(() => {
  const folder = join(ROOT, String((runs += 1)));
  [own, shipped] = [join(folder, "own"), join(folder, "shipped")];
  for (const path of [own, shipped]) mkdirSync(path, { recursive: true });
  write(
    shipped,
    "base",
    "mode: enforce",
    "net: { allowed: ['@npm'] }",
    "commands:",
    "  denied: ['rm *']",
    "  opaque: deny",
  );
});
afterAll(() => rmSync(ROOT, { recursive: true }));

function write(folder: string, name: string, ...lines: readonly string[]): void {
  writeFileSync(join(folder, `${name}.yaml`), [`id: ${name}`, `name: ${name}`, ...lines, ""].join("\n"));
}

function load(name: string): CompiledPolicy {
  const loaded = loadPolicy(join(own, `${name}.yaml`), shipped);
  if ("problems" in loaded) throw new Error(loaded.problems.map(({ text }) => text).join("\n"));
  return loaded.ok;
}

function problems(name: string): readonly string[] {
  const loaded = loadPolicy(join(own, `${name}.yaml`), shipped);
  return "problems" in loaded ? loaded.problems.map(({ text }) => text) : [];
}

describe("a policy that starts from another one", () => {
  test("adds to its lists, replaces its other values, and keeps what it does not name", () => {
    write(
      own,
      "mine",
      "extends: base",
      "net: { allowed: [r.example] }",
      "commands: { denied: ['cp *'], opaque: ask }",
    );
    const { document } = load("mine");
    expect(document).toEqual({
      id: "mine",
      name: "mine",
      mode: "enforce",
      net: { allowed: ["@npm", "r.example"] },
      commands: { denied: ["rm *", "cp *"], opaque: "ask" },
    });
  });

  test("replaces a list that is marked", () => {
    write(
      own,
      "mine",
      "extends: base",
      "net:",
      "  allowed: !only [r.example]",
      "commands:",
      "  denied: !only []",
    );
    const { document } = load("mine");
    expect([document.net?.allowed, document.commands?.denied]).toEqual([["r.example"], []]);
  });

  test("names the file and line of each rule", () => {
    write(own, "mine", "extends: base", "commands:", "  denied:", "    - cp *");
    const sourceOf = (text: string) => decide(load("mine"), readShell(text), WHERE).rule?.source;
    expect([sourceOf("rm x"), sourceOf("cp x y")]).toEqual(["base.yaml:6", "mine.yaml:6"]);
  });

  test("adds to what an absent list means, and does not lose the credentials by one more denial", () => {
    write(own, "mine", "extends: base", "fs: { deny_read: [$HOME/diary], write: [$HOME/out/**] }");
    const { fs } = load("mine").document;
    expect(fs?.deny_read).toEqual([...pathsOf(DENIED_READS), "$HOME/diary"]);
    expect(fs?.write).toEqual(["$PROJECT/**", "$HOME/out/**"]);
  });

  test("finds it beside itself before the shipped ones, and by its own name finds the shipped one", () => {
    write(own, "base", "extends: base", "commands: { denied: ['dd *'] }");
    write(own, "mine", "extends: base", "commands: { denied: ['cp *'] }");
    expect(load("mine").document.commands?.denied).toEqual(["rm *", "dd *", "cp *"]);
    const rule = decide(load("base"), readShell("rm x"), WHERE).rule;
    expect(rule?.source).toBe("shipped/base.yaml:6");
  });

  test.each([
    ["one that there is not", "extends: nobody", /^mine\.yaml:3:1: Cannot find policy 'nobody'/],
    ["itself", "extends: mine", /^mine\.yaml:3:1: Cannot find policy 'mine' beside this file/],
    ["one that starts from it", "extends: other", /^other\.yaml:3:1: 'mine' extends this policy itself/],
    ["one with a fault", "extends: broken", /^broken\.yaml:3:1: .*comands/],
    ["none, with a mark", "net: { allowed: !only [] }", /^mine\.yaml:3:8: !only replaces a list/],
  ])("does not load from %s, and says where", (_, line, expected) => {
    write(own, "other", "extends: mine");
    write(own, "broken", "comands: {}");
    write(own, "mine", line);
    expect(problems("mine")[0]).toMatch(expected);
  });

  test("does not load with a rule of the other's that fails its own examples, and names the other's line", () => {
    write(own, "bad", "commands:", "  denied:", "    - { pattern: 'rm *', match: [cp x] }");
    write(own, "mine", "extends: bad");
    expect(problems("mine")[0]).toMatch(/^bad\.yaml:5:/);
  });
});

test("an edit of the policy that another starts from holds for the next decision; a broken one changes nothing and is told", () => {
  write(own, "base", "mode: enforce", "commands: { denied: ['rm *'] }");
  write(own, "mine", "extends: base");
  const commits = { of: () => null, forget: () => {} };
  const policies = new Policies(own, shipped, commits, () => {});
  const verdict = (text: string): string => {
    const holds = policies.effective("mine", []);
    return isRefusal(holds) ? holds.message : decide(holds.policies[0], readShell(text), WHERE).verdict;
  };
  expect([verdict("rm x"), verdict("cp x y")]).toEqual(["deny", "allow"]);
  write(own, "base", "mode: enforce", "commands: { denied: ['cp *'] }");
  expect([verdict("rm x"), verdict("cp x y")]).toEqual(["allow", "deny"]);
  write(own, "base", "mode: [");
  expect([verdict("rm x"), verdict("cp x y")]).toEqual(["allow", "deny"]);
  expect(policies.show("mine").problems[0]?.text).toMatch(/^base\.yaml:/);
  rmSync(join(own, "base.yaml"));
  expect([verdict("rm x"), policies.show("mine").problems]).toEqual(["deny", []]);
});
