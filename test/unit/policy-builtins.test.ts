import { expect, test } from "vitest";
import { decide, parsePolicy, readArgv, readShell } from "../../broker/policy/index.ts";

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };
const loaded = parsePolicy("id: p\nname: P\n", "p.yaml");
if (!("ok" in loaded)) throw new Error("The policy must load");
const policy = loaded.ok;

test.each([
  ["cd src && export A=1; make", ["cd src", "export A=1"]],
  [". ./env.sh; source ./env.sh", [". ./env.sh", "source ./env.sh"]],
  ["set -e\numask 077\ntrap 'rm x' EXIT", ["set -e", "umask 077", "trap 'rm x' EXIT"]],
  ["command cd src; builtin export A", ["command cd src", "builtin export A"]],
  ["readonly A=1; unset B; alias l=ls; unalias l", ["readonly A=1", "unset B", "alias l=ls", "unalias l"]],
  ["eval 'cd x'", ["eval 'cd x'"]],
  ["sh -c 'cd x; export A=1'; env cd x; echo cd; A=1 make; ./cd x", []],
])("%s", (command, fragments) => {
  expect(decide(policy, readShell(command, "bash"), WHERE).builtins).toEqual({ fragments, more: 0 });
});

test("without a shell there are none", () => {
  expect(decide(policy, readArgv(["cd", "/"]), WHERE).builtins.fragments).toEqual([]);
});

test("of many, the first are told and the rest counted", () => {
  const { fragments, more } = decide(policy, readShell("cd x; ".repeat(100)), WHERE).builtins;
  expect([fragments.length, more]).toEqual([16, 84]);
});
