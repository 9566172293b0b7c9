import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { decide, loadPolicy, readShell } from "../../broker/policy/index.ts";

const POLICIES = join(import.meta.dirname, "../../policies");
const REFUSING = new Set(["deny", "would_deny", "ask", "would_ask"]);

interface Case {
  readonly command: string;
  readonly cwd: string;
  readonly verdict: string;
  readonly rule: { readonly list: string; readonly pattern: string } | null;
}

describe.each(readdirSync(join(POLICIES, "cases")))("the shipped policy %s", (name) => {
  describe.each(["ALLOW", "DENY"])("%s", (kind) => {
    const folder = join(POLICIES, "cases", name, kind);
    test.each(readdirSync(folder))("%s", (file) => {
      const expected = parse(readFileSync(join(folder, file), "utf8")) as Case;
      const loaded = loadPolicy(join(POLICIES, `${name}.yaml`));
      if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
      const where = { project: "/projects/example", home: "/home/example", cwd: expected.cwd };
      const { verdict, rule } = decide(loaded.ok, readShell(expected.command), where);
      const { list, pattern } = rule ?? {};
      expect({ verdict, rule: rule === null ? null : { list, pattern } }).toEqual({
        verdict: expected.verdict,
        rule: expected.rule,
      });
      expect(REFUSING.has(verdict)).toBe(kind === "DENY");
    });
  });
});
