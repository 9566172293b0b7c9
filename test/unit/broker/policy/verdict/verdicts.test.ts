import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import {
  decide,
  parsePolicy,
  type Program,
  readArgv,
  readShell,
} from "../../../../../broker/policy/index.ts";

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app/src" };

const POLICY = `
id: table
name: Table
mode: enforce
commands:
  denied:
    - "sudo *"
    - "rm -rf /"
    - "rm -rf ~"
    - "rm -rf $PROJECT"
    - "chmod 777 *"
    - "curl * | sh"
    - "git push --force *"
    - "cat /etc/shadow"
    - "find * -delete *"
    - "npm publish *"
    - "docker run * --privileged *"
    - "kubectl delete namespace *"
    - "reboot"
    - "git checkout -- *"
  ask: ["git push *"]
  isolated: ["npm install *", "pip install *", "cargo install *"]
  warn: ["git reset --hard *"]
`;

function policyOf(text: string) {
  const loaded = parsePolicy(text, "table.yaml");
  if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
  return loaded.ok;
}

const table = policyOf(POLICY);

function verdictOf(command: string): string {
  const { verdict, rule } = decide(table, readShell(command), WHERE);
  return rule === null ? verdict : `${verdict} ${rule.list === "commands.opaque" ? "opaque" : rule.pattern}`;
}

interface Group {
  readonly group: string;
  readonly expected: string;
  readonly commands: readonly string[];
}

const TABLE = parse(readFileSync(join(import.meta.dirname, "verdicts.yaml"), "utf8")) as readonly Group[];

describe.each(TABLE)("$group: $expected", ({ expected, commands }) => {
  test.each(commands.map((command) => [command]))("%j", (command) => {
    expect(verdictOf(command)).toBe(expected);
  });
});

describe("a program and its arguments without a shell", () => {
  test.each([
    [["sudo", "id"], "deny"],
    [["rm", "-rf", "/"], "deny"],
    [["sh", "-c", "sudo id"], "deny"],
    [["env", "sudo", "id"], "deny"],
    [["find", ".", "-exec", "sudo", "ls", ";"], "deny"],
    [["echo", "$(sudo id)"], "allow"],
    [["echo", ";", "sudo", "id"], "allow"],
    [["$x"], "allow"],
    [["rm", "-rf", "~"], "allow"],
    [["rm", "-rf", "/home/ann"], "deny"],
  ])("%j is %s", (argv, expected) => {
    expect(decide(table, readArgv(argv), WHERE).verdict).toBe(expected);
  });
});

test("the answer names list, pattern, fragment and line", () => {
  expect(decide(table, readShell("ls && env sudo -u bob id > out"), WHERE)).toEqual({
    verdict: "deny",
    mode: "enforce",
    policyId: "table",
    approved: "allow",
    isolatedBy: [],
    warnings: [],
    builtins: [],
    rule: { list: "commands.denied", pattern: "sudo *", fragment: "sudo -u bob id", source: "table.yaml:7" },
  });
});

test("a fragment is cut at 512 characters", () => {
  const { rule } = decide(table, readShell(`sudo ${"x".repeat(5000)}`), WHERE);
  expect(rule?.fragment).toHaveLength(512);
});

test("a rule of commands.warn lets the command run and is told", () => {
  const { verdict, warnings } = decide(table, readShell("git reset HEAD --hard"), WHERE);
  expect(verdict).toBe("allow");
  expect(warnings.map((rule) => rule.pattern)).toEqual(["git reset --hard *"]);
});

test("a program is also matched by where its name resolves to", () => {
  const policy = policyOf(
    '{ id: p, name: P, mode: enforce, commands: { denied: ["/usr/bin/mawk *", "dash *"] } }',
  );
  const files: Readonly<Record<string, string>> = { awk: "/usr/bin/mawk", sh: "/usr/bin/dash" };
  const resolve = (name: string): Program | null => {
    const real = files[name];
    return real === undefined ? null : { path: `/usr/bin/${name}`, real };
  };
  expect(decide(policy, readShell("awk 1"), { ...WHERE, resolve }).verdict).toBe("deny");
  expect(decide(policy, readShell("sh x"), { ...WHERE, resolve }).verdict).toBe("deny");
  expect(decide(policy, readShell("gawk 1"), { ...WHERE, resolve }).verdict).toBe("allow");
});
