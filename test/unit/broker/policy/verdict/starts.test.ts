import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { concernedStarts, decideStart } from "../../../../../broker/policy/index.ts";
import type { ProgramFile, ProgramStart } from "../../../../../world/backend.ts";
import { PROJECT, WHERE, file, policyOf, resolve, started } from "../../../../support/policy/starts.ts";

type Start = ProgramStart | ProgramFile;

function verdict(commands: object, start: Start, more: object = {}): string {
  const told = "files" in start ? start : started(start);
  const [first] = decideStart([policyOf(commands, more)], told, [WHERE]).found;
  return first === undefined ? "allow" : `${first.verdict} ${first.rule.pattern}`;
}

const SUDO = { denied: ["sudo *"] };
const sudo = file("/usr/bin/sudo", ["id"]);

describe("a rule that refuses meets a program however it is started", () => {
  const ways: readonly (readonly [string, Start])[] = [
    ["by its path", sudo],
    ["by a link to it", file(`${PROJECT}/harmless`, ["id"], { path: "/usr/bin/sudo" })],
    ["by a copy of it", file(`${PROJECT}/harmless`, ["id"], { same: ["sudo"] })],
    ["with another name for itself", { ...sudo, argv: ["harmless", "id"] }],
    ["by another program that calls itself so", { ...file("/usr/bin/make", []), argv: ["sudo", "id"] }],
    ["by a descriptor", { ...sudo, called: "", argv: ["x", "id"] }],
    ["by a relative path", { ...sudo, called: "../../usr/bin/sudo" }],
    ["by the line of a script", started(file(`${PROJECT}/run`, ["id"]), sudo)],
    ["by a dynamic loader", started(file("/lib64/ld-linux-x86-64.so.2", ["/usr/bin/sudo", "id"]), sudo)],
    ["in the text of a shell", file("/bin/sh", ["-c", "true && sudo id"])],
    ["behind env", file("/usr/bin/env", ["X=1", "sudo", "id"])],
    ["behind xargs", file("/usr/bin/xargs", ["-n1", "sudo"])],
    ["as a module of Python's", file("/usr/bin/python3", ["-m", "sudo", "id"])],
    ["with more text than is read", file("/usr/bin/sudo", ["x".repeat(100_000)])],
  ];
  test.each(ways)("%s", (_how, start) => {
    expect(verdict(SUDO, start)).toBe("deny sudo *");
  });

  const twins: readonly (readonly [string, Start])[] = [
    ["a program whose name only begins so", file("/usr/bin/sudo-helper", ["id"])],
    ["its name as a word", file("/usr/bin/man", ["sudo"])],
    ["its name in a text", file("/bin/sh", ["-c", "echo sudo id"])],
    ["its name as a pattern", file("/usr/bin/make", ["sudo"])],
    ["env alone", file("/usr/bin/env", [])],
  ];
  test.each(twins)("but not %s", (_what, start) => {
    expect(verdict(SUDO, start)).toBe("allow");
  });
});

describe("a step of git's own work", () => {
  const commands = { denied: ["git reset --hard *", "git clean -f *"] };
  const of = (words: string, path = "/usr/bin/git"): NonNullable<ProgramStart["starter"]> => ({
    path,
    argv: words.split(" "),
  });
  const step = (words: string, path = "/usr/lib/git-core/git"): ProgramFile =>
    file(path, words.split(" "), { path });
  const STASH = step("reset --hard -q --no-recurse-submodules");
  const WORKTREE = step("reset --hard --no-recurse-submodules");

  test.each([
    ["git stash", STASH],
    ["git stash push -m kept list.txt", STASH],
    ["/usr/lib/git-core/git -C sub -c user.name=x --no-pager stash -u", step("clean --force --quiet -d :/")],
    ["/usr/bin/git stash -a", step("clean --force --quiet -d :/ -x")],
    ["git worktree add ../side", WORKTREE],
  ])("is decided about with the command: %s", (words, child) => {
    expect(verdict(commands, { ...started(child), starter: of(words) })).toBe("allow");
  });

  test.each<readonly [string, ProgramStart["starter"], ProgramFile]>([
    ["with other words than git's", of("git stash"), step("reset --hard -q HEAD~5")],
    ["of another command", of("git submodule foreach git reset --hard -q --no-recurse-submodules"), STASH],
    [
      "of a command behind an option that takes its name",
      of("git --attr-source stash submodule foreach x"),
      STASH,
    ],
    ["of a command behind a value that looks like one", of("git -c stash submodule foreach x"), STASH],
    ["of another command than it belongs to", of("git stash"), step("reset --hard --no-recurse-submodules")],
    ["of a git that lies in the project", of("git stash", `${PROJECT}/git`), STASH],
    [
      "that another git is",
      of("git stash"),
      step("reset --hard -q --no-recurse-submodules", `${PROJECT}/git`),
    ],
    ["that another program starts", of("python3 stash", "/usr/bin/python3"), STASH],
    ["that nobody knows the start of", undefined, STASH],
  ])("is none %s", (_what, starter, child) => {
    expect(verdict(commands, { ...started(child), ...(starter === undefined ? {} : { starter }) })).toMatch(
      /^deny/,
    );
  });

  test("is none of a script, and none whose words were cut", () => {
    const starter = of("git stash");
    expect(verdict(commands, { ...started(STASH), starter, cut: true })).toMatch(/^deny/);
    expect(
      verdict(commands, { ...started(STASH, file("/usr/bin/git", ["reset", "--hard"])), starter }),
    ).toMatch(/^deny/);
  });
});

describe("a file that is many programs", () => {
  const busybox = (called: string, argv: readonly string[]): ProgramFile => ({
    called,
    path: "/bin/busybox",
    argv,
    same: ["busybox", "rm", "sudo"],
  });
  const commands = { denied: ["rm -rf /", "sudo *"] };

  test.each([
    ["by the name of one", busybox("/bin/rm", ["rm", "-rf", "/"])],
    ["by its own", busybox("/bin/busybox", ["busybox", "rm", "-rf", "/"])],
    ["by its own under another's", busybox("/bin/ls", ["rm", "-rf", "/"])],
    ["by a link in the project", busybox(`${PROJECT}/x`, ["x", "rm", "-rf", "/"])],
    ["by a program that only says that it is one", file(`${PROJECT}/busybox`, ["id"], { same: ["sudo"] })],
  ])("is refused %s", (_how, start) => {
    expect(verdict(commands, start)).toMatch(/^deny/);
  });

  test.each([
    ["another of them with such words", busybox("/bin/grep", ["grep", "sudo", "x"])],
    ["one with other words", busybox("/bin/rm", ["rm", "-rf", "build"])],
    ["another by its own name", busybox("/bin/busybox", ["busybox", "ls", "/"])],
  ])("starts: %s", (_what, start) => {
    expect(verdict(commands, start)).toBe("allow");
  });

  test("is on a list of all that may run by the name it is started by, and no other that its caller gives it", () => {
    const allowed = { allowed: ["ls *"] };
    expect(verdict(allowed, busybox("/bin/ls", ["ls", "-l"]))).toBe("allow");
    expect(verdict(allowed, busybox("/bin/ls", ["rm", "-l"]))).toMatch(/^deny/);
    expect(verdict(allowed, busybox("/bin/busybox", ["busybox", "ls"]))).toMatch(/^deny/);
    const both = { allowed: ["ls *", "busybox *"] };
    expect(verdict(both, busybox("/bin/busybox", ["busybox", "ls"]))).toBe("allow");
    expect(verdict(both, busybox("/bin/busybox", ["busybox", "rm", "x"]))).toMatch(/^deny/);
  });
});

describe("a list of all that may run", () => {
  const allowed = { allowed: ["git *", "vim *", "./tool *", "npm *", "./node_modules/.bin/lint *"] };
  test.each([
    ["by the path of its name", file("/usr/bin/git", ["status"])],
    ["by the name of an alternative", file("/usr/bin/vim", ["x"])],
    ["by a link to it", file(`${PROJECT}/g`, ["status"], { path: "/usr/bin/git" })],
    ["by a descriptor", file("", ["status"], { path: "/usr/bin/git" })],
    ["as a file of the project", file(`${PROJECT}/tool`, ["x"])],
    ["by a relative path", file("./tool", ["x"], { path: `${PROJECT}/tool` })],
    [
      "by a relative link",
      file("node_modules/.bin/lint", [], { path: `${PROJECT}/node_modules/lint/cli.js` }),
    ],
    ["as a script", started(file("/usr/bin/npm", ["test"]), file("/usr/bin/env", ["node", "/usr/bin/npm"]))],
  ])("is satisfied %s", (_how, start) => {
    expect(verdict(allowed, start)).toBe("allow");
  });

  test.each([
    ["another program", file("/usr/bin/make", [])],
    ["another one that calls itself so", { ...file("/usr/bin/make", []), argv: ["git", "status"] }],
    ["a copy", file(`${PROJECT}/x`, ["status"], { same: ["git"] })],
    ["an impostor", file(`${PROJECT}/git`, ["status"])],
    ["an impostor by a relative path", file("./git", ["status"], { path: `${PROJECT}/git` })],
    ["an impostor without a folder", file("git", ["status"], { path: `${PROJECT}/git` })],
    [
      "an impostor behind a folder that leads elsewhere",
      file("/tmp/l/../../usr/bin/git", ["status"], { path: "/tmp/usr/bin/git" }),
    ],
    ["a file of its name in another folder", file("./tool", ["x"], { path: `${PROJECT}/sub/tool` })],
    ["the interpreter of a script that is not on it", file("/usr/bin/node", ["/usr/bin/npm"])],
  ])("is not satisfied by %s", (_what, start) => {
    expect(verdict(allowed, start)).toBe(
      "deny only 'git *', 'vim *', './tool *', 'npm *', './node_modules/.bin/lint *'",
    );
  });

  test("counts what runs inside another program, and not what is started of its own", () => {
    const python = file("/usr/bin/python3", ["-m", "pip", "list"]);
    expect(verdict({ allowed: ["python3 *"] }, python)).toMatch(/^deny/);
    expect(verdict({ allowed: ["python3 *", "pip *"] }, python)).toBe("allow");
    expect(verdict({ allowed: ["sh *"] }, file("/bin/sh", ["-c", "cd x && make"]))).toBe("allow");
  });

  test("holds what asks and what is isolated", () => {
    const commands = { allowed: ["ls"], ask: ["git push *"], isolated: ["npm install *"] };
    expect(verdict(commands, file("/usr/bin/git", ["push", "x"]))).toBe("ask git push *");
    expect(verdict(commands, file("/usr/bin/npm", ["install"]))).toBe("isolate npm install *");
  });
});

describe("what is not known", () => {
  const memory = { ...file("", ["x"]), path: null };
  test("a program without a file is refused unless the policy lets it run", () => {
    expect(verdict({}, memory)).toBe("deny memory_programs: deny");
    expect(verdict({ memory_programs: "allow" }, memory)).toBe("allow");
    expect(verdict({ memory_programs: "allow", ...SUDO }, { ...memory, same: ["sudo"] })).toBe("deny sudo *");
    expect(verdict({ memory_programs: "allow", allowed: ["x *"] }, memory)).toMatch(/^deny only/);
    const interpreter = started(file(`${PROJECT}/run`, []), memory);
    expect(verdict({}, interpreter)).toBe("deny memory_programs: deny");
  });

  test("what cannot be told is refused by each rule that may be meant", () => {
    const unread = { ...started(file("/usr/bin/make", [])), unread: "its line is too long" };
    expect(verdict({}, unread)).toMatch(/^deny/);
    const open = { memory_programs: "allow" };
    expect(verdict(open, unread)).toBe("allow");
    expect(verdict({ ...open, ...SUDO }, unread)).toBe("deny sudo *");
    expect(verdict({ ...open, ask: ["sudo *"] }, unread)).toBe("deny sudo *");
    expect(verdict({ ...open, isolated: ["npm *"] }, unread)).toBe("isolate npm *");
    expect(verdict({ ...open, warn: ["npm *"] }, unread)).toBe("allow");
  });

  test("words that are not told may be what a rule about this program means", () => {
    const cut = { ...started(file("/usr/bin/rm", ["-rf", "a"])), cut: true };
    expect(verdict({ denied: ["rm -rf /"] }, cut)).toBe("deny rm -rf /");
    expect(verdict({ ask: ["rm *"] }, cut)).toBe("deny rm *");
    expect(verdict({ denied: ["sudo *", "cp -r / *"] }, cut)).toBe("allow");
    expect(verdict({ allowed: ["rm *"] }, cut)).toBe("allow");
    expect(verdict({ allowed: ["rm -rf a"] }, cut)).toMatch(/^deny/);
    const git = { ...started(file("/usr/bin/git", ["status"])), cut: true };
    expect(verdict({ allowed: ["git *"] }, git)).toMatch(/^deny/);
  });
});

test("a subcommand that is a program of its own is that subcommand", () => {
  const push = file("/usr/lib/git-core/git-push", ["origin"], { path: "/usr/bin/git", same: ["git"] });
  expect(verdict({ denied: ["git push *"] }, push)).toBe("deny git push *");
  expect(verdict({ denied: ["git push *"] }, { ...push, argv: ["git-fetch"], called: "/x/git-fetch" })).toBe(
    "allow",
  );
});

test("nobody is asked where the policy says so", () => {
  const push = file("/usr/bin/git", ["push"]);
  expect(verdict({ ask: ["git push *"] }, push)).toBe("ask git push *");
  expect(verdict({ ask: ["git push *"] }, push, { approval: { interactive: false } })).toBe(
    "deny git push *",
  );
});

test("of two policies both are heard, and enforce beats observe", () => {
  const observing = policyOf({ ask: ["git *"] }, { mode: "observe" });
  const push = started(file("/usr/bin/git", ["push"]));
  const { mode, found } = decideStart([observing, policyOf({ isolated: ["git push *"] })], push, [WHERE]);
  expect(mode).toBe("enforce");
  expect(found.map((one) => one.verdict)).toContain("ask");
  expect(found.at(-1)?.verdict).toBe("isolate");
});

test("a warning is told once, whatever the program is called", () => {
  const policy = policyOf({ warn: ["git reset --hard *"] });
  const reset = started(file("/usr/bin/git", ["reset", "--hard"], { same: ["git"] }));
  expect(decideStart([policy], reset, [WHERE]).warnings.length).toBe(1);
  expect(resolve("git")?.real).toBe("/usr/bin/git");
});

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
