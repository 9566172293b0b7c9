import { expect, test } from "vitest";
import {
  decide,
  parsePolicy,
  readArgv,
  readShell,
  toldBuiltins,
} from "../../../../../broker/policy/index.ts";

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };
const loaded = parsePolicy("id: p\nname: P\n", "p.yaml");
if (!("ok" in loaded)) throw new Error("The policy must load");
const policy = loaded.ok;

type Ran = Parameters<typeof toldBuiltins>[1];
const KILLED: Ran = new Set(["started"]);
const FAILED: Ran = new Set(["started", "ended"]);
const SUCCEEDED: Ran = new Set(["started", "ended", "succeeded"]);

/** `there`: whether every `cd` finds its folder. */
function told(command: string, ended: Ran, there = false): readonly string[] {
  const { builtins } = decide(policy, readShell(command, "bash"), WHERE);
  return toldBuiltins(builtins, ended, () => there).fragments;
}

test.each([
  ["cd src && export A=1 && make", ["cd src", "export A=1"]],
  [". ./env.sh; source ./env.sh", [". ./env.sh", "source ./env.sh"]],
  ["set -e\numask 077\ntrap 'rm x' EXIT", ["set -e", "umask 077", "trap 'rm x' EXIT"]],
  ["command cd src; builtin export A", ["command cd src", "builtin export A"]],
  ["readonly A=1; unset B; alias l=ls; unalias l", ["readonly A=1", "unset B", "alias l=ls", "unalias l"]],
  ["eval 'cd x'", ["eval 'cd x'"]],
  ["sh -c 'cd x; export A=1'; env cd x; echo cd; A=1 make; ./cd x", []],
  ["(exit 3); cd x", ["cd x"]],
  ["cd x || exit 1; export A=1", ["cd x", "export A=1"]],
  ["cd x || exit; export A=1", ["cd x", "export A=1"]],
])("of '%s' these ran when it exited with 0", (command, fragments) => {
  expect(told(command, SUCCEEDED)).toEqual(fragments);
});

test.each([
  ["false && cd x; true", []],
  ["true || cd x", []],
  ["cd a || cd b", ["cd a"]],
  ["if false; then cd x; fi", []],
  ["while false; do cd x; done", []],
  ["f() { cd x; }", []],
  ["case a in b) cd x;; esac", []],
  ["exit 0; cd x", []],
  ["test -f x && exit 0; cd x", []],
  ["exec true; cd x", ["exec true"]],
  ["trap 'exit 0' INT; cd x", ["trap 'exit 0' INT"]],
  ["echo ${y:-$(cd x)}", []],
  ["cd src && export A=1 &", ["cd src"]],
  ["a && cd x || b", []],
])("of '%s' nothing is said to have run that may have been passed over", (command, fragments) => {
  expect(told(command, SUCCEEDED)).toEqual(fragments);
});

test.each([
  ["cd src && export A=1 && make", ["cd src"]],
  ["false && cd x", []],
  ["cd src; make; cd ..", ["cd src", "cd .."]],
  [". ./env.sh; cd src", [". ./env.sh"]],
  ["set -e; make; cd src", ["set -e"]],
  ["echo ${x:?}; cd src", []],
  ["cd x || exit 1; export A=1", ["cd x"]],
])("of '%s' these ran when it failed", (command, fragments) => {
  expect(told(command, FAILED)).toEqual(fragments);
});

test.each([
  ["cd src && export A=1; cd ..; ls", ["cd src", "export A=1", "cd .."]],
  ["cd src && cd x && umask 022 && make; false", ["cd src", "cd x", "umask 022"]],
  ["mkdir x && cd x; false", []],
  ["cd src && make && cd x; false", ["cd src"]],
  ["cd src || cd other; false", ["cd src"]],
  ["cd - && export A=1; false", ["cd -"]],
  ["cd $x && export A=1; false", ["cd $x"]],
])("of '%s' these ran where every cd finds its folder", (command, fragments) => {
  expect(told(command, FAILED, true)).toEqual(fragments);
});

test("of a line that was ended in the middle only the first command certainly ran", () => {
  expect(told("cd src; sleep 9; cd ..", KILLED)).toEqual(["cd src"]);
  expect(told("sleep 9; cd ..", KILLED)).toEqual([]);
});

test("without a shell there are none, and of what cannot be read to its end neither", () => {
  expect(decide(policy, readArgv(["cd", "/"]), WHERE).builtins).toEqual([]);
  expect(told("cd x; (", SUCCEEDED)).toEqual([]);
});

test("of many, the first are told and the rest counted", () => {
  const { builtins } = decide(policy, readShell("cd x; ".repeat(100)), WHERE);
  const { fragments, more } = toldBuiltins(builtins, FAILED, () => false);
  expect([fragments.length, more]).toEqual([16, 84]);
});
