import fc from "fast-check";
import { expect, test } from "vitest";
import { concernedStarts, decideStart } from "../../broker/policy/index.ts";
import type { ProgramStart } from "../../world/backend.ts";
import { file, policyOf, started, WHERE } from "../support/policy/starts.ts";

const namesOf = (commands: object) => concernedStarts([policyOf(commands)]);

test("the last part of a rule's first word is a name, in each list that can refuse or warn", () => {
  const commands = {
    denied: ["/opt/x/bin/deploy *", "sudo *"],
    ask: ["git push *"],
    isolated: ["$PROJECT/tool *"],
    warn: ["make *"],
  };
  const { names, all } = namesOf(commands);
  expect(all).toBe(false);
  expect(names).toEqual(expect.arrayContaining(["deploy", "sudo", "git", "tool", "make"]));
});

test("what is allowed, approved by itself or has a pipe in it makes no name", () => {
  const policy = policyOf({ denied: ["curl * | sh"] }, { approval: { auto_approve: ["make"] } });
  expect(concernedStarts([policy])).toEqual({ names: [], all: false });
});

test("each start matters to a rule whose program may be any, and to a list of all that may run", () => {
  expect(namesOf({ denied: ["* x"] }).all).toBe(true);
  expect(namesOf({ denied: ["$PROJECT/bin/* x"] }).all).toBe(true);
  expect(namesOf({ warn: ["*"] }).all).toBe(true);
  expect(namesOf({ allowed: ["git *"], denied: ["sudo *"] })).toMatchObject({ all: true });
  expect(namesOf({ allowed: ["git *"], denied: ["sudo *"] }).names).toContain("sudo");
  expect(namesOf({ allowed: [] })).toEqual({ names: [], all: false });
});

test("a program with a star is a pattern of names, and git's own commands are programs of such a name", () => {
  expect(namesOf({ denied: ["*ctl x", "mkfs.* *"] })).toMatchObject({ all: false });
  expect(namesOf({ denied: ["*ctl x", "mkfs.* *"] }).names).toEqual(
    expect.arrayContaining(["*ctl", "mkfs.*"]),
  );
  expect(namesOf({ denied: ["git push *"] }).names).toEqual(expect.arrayContaining(["git", "git-*"]));
});

test("programs with a version in their names are told by each, and those that run others inside are asked about", () => {
  const { names } = namesOf({ isolated: ["pip install *"] });
  expect(names).toEqual(
    expect.arrayContaining(["pip", "pip3", "pip3.11", "python3", "python3.12", "busybox"]),
  );
});

test("two policies together concern what either does", () => {
  const both = concernedStarts([policyOf({ denied: ["sudo *"] }), policyOf({ allowed: ["make"] })]);
  expect(both.all).toBe(true);
  expect(both.names).toContain("sudo");
});

const program = fc.constantFrom("git", "rm", "npm", "sudo", "sh", "python3", "env", "busybox", "make");
const word = fc.constantFrom(
  "push",
  "-rf",
  "/",
  "x",
  "install",
  "sudo",
  "-c",
  "rm -rf /",
  "-m",
  "pip",
  "--force",
);
const pattern = fc
  .tuple(program, fc.array(fc.oneof(word, fc.constant("*")), { maxLength: 3 }))
  .map(([first, words]) => [first, ...words].join(" "));
const list = fc.array(pattern, { maxLength: 3 });
const lists = fc.record({ denied: list, ask: list, isolated: list, allowed: list }, { requiredKeys: [] });
const anyFile = fc
  .record({
    called: fc.oneof(
      program.map((name) => `/usr/bin/${name}`),
      fc.constantFrom("./x", "", "/projects/app/git"),
    ),
    path: fc.oneof(
      program.map((name) => `/usr/bin/${name}`),
      fc.constantFrom(null, "/projects/app/x"),
    ),
    argv: fc.tuple(program, fc.array(word, { maxLength: 3 })).map(([name, words]) => [name, ...words]),
    same: fc.array(program, { maxLength: 2 }),
  })
  .map(({ called, ...more }) => file(called, [], more));
const anyStart: fc.Arbitrary<ProgramStart> = fc
  .tuple(anyFile, fc.array(anyFile, { maxLength: 1 }), fc.boolean(), fc.constantFrom(null, "unread"))
  .map(([first, others, cut, unread]) => ({ ...started(first, ...others), cut, unread }));

const STRICTNESS = { allow: 0, isolate: 1, ask: 2, deny: 3 } as const;

function strictness(commands: object, start: ProgramStart): number {
  return STRICTNESS[decideStart([policyOf(commands)], start, [WHERE]).found[0]?.verdict ?? "allow"];
}

test("one more rule of denied never allows more", () => {
  fc.assert(
    fc.property(lists, pattern, anyStart, (commands, added, start) => {
      const more = { ...commands, denied: [...(commands.denied ?? []), added] };
      expect(strictness(more, start)).toBeGreaterThanOrEqual(strictness(commands, start));
    }),
    { numRuns: 1000 },
  );
});

test("a start that a rule speaks about is asked about: one of its files has such a name, or is one of them", () => {
  fc.assert(
    fc.property(lists, anyFile, (commands, one) => {
      const refusing = { ...commands, allowed: [], memory_programs: "allow" };
      const start = started({ ...one, argv: ["", ...one.argv.slice(1)] });
      fc.pre(strictness(refusing, start) > 0);
      const { names, all } = namesOf(refusing);
      const own = [one.called, one.path ?? ""].map((path) => path.slice(path.lastIndexOf("/") + 1));
      // They start what they run, which is asked about then.
      const starts = [...own, ...one.same].some((name) => ["sh", "env", "sudo", "npm"].includes(name));
      expect(all || starts || [...own, ...one.same].some((name) => names.includes(name))).toBe(true);
    }),
    { numRuns: 500 },
  );
});
