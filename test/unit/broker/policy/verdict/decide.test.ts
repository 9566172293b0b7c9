import { describe, expect, test } from "vitest";
import {
  decide,
  decideAll,
  parsePolicy,
  readArgv,
  readShell,
  undecidedIn,
} from "../../../../../broker/policy/index.ts";

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };

function policyOf(commands: string, rest = "mode: enforce") {
  const loaded = parsePolicy(`{ id: p, name: P, ${rest}, commands: ${commands} }`, "p.yaml");
  if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
  return loaded.ok;
}

function answer(policy: ReturnType<typeof policyOf>, command: string) {
  const { verdict, rule } = decide(policy, readShell(command), WHERE);
  return [verdict, rule?.list ?? null, rule?.fragment ?? null];
}

describe("a policy without rules", () => {
  test("allows, and no rule is named", () => {
    expect(answer(policyOf("{}"), "rm -rf x | cat")).toEqual(["allow", null, null]);
  });

  test("isolates a program that cannot be known", () => {
    expect(answer(policyOf("{}"), "$x y")).toEqual(["isolate", "commands.opaque", "$x y"]);
  });

  test("is in observe mode when it does not say so", () => {
    const { mode, verdict } = decide(policyOf("{ denied: [a] }", "selectable: true"), readShell("a"), WHERE);
    expect([mode, verdict]).toEqual(["observe", "would_deny"]);
  });
});

test.each([
  ["{ denied: [x] }", "would_deny"],
  ["{ ask: [x] }", "would_ask"],
  ["{ isolated: [x] }", "would_isolate"],
  ["{ warn: [x] }", "allow"],
])("observe mode turns %s into %s", (commands, verdict) => {
  expect(decide(policyOf(commands, "mode: observe"), readShell("x"), WHERE).verdict).toBe(verdict);
});

test("the strictest of several fragments decides: deny, ask, isolate, allow", () => {
  const policy = policyOf("{ denied: [d], ask: [a], isolated: [i] }");
  expect(answer(policy, "ok; i; a; d")).toEqual(["deny", "commands.denied", "d"]);
  expect(answer(policy, "ok; i; a")).toEqual(["ask", "commands.ask", "a"]);
  expect(answer(policy, "ok; i")).toEqual(["isolate", "commands.isolated", "i"]);
  expect(answer(policy, "ok")).toEqual(["allow", null, null]);
});

describe("commands.allowed", () => {
  const policy = policyOf(
    '{ allowed: ["git status", "git log *", "npm test *", "cat src/*", "ls *", "grep * | sort"], isolated: ["npm install *"] }',
  );

  test.each([
    "git status",
    "git log --oneline -5",
    "npm test",
    "npm t -- --watch",
    "cat src/a.ts",
    "cat ./src//a.ts",
    "/usr/bin/git status",
    "ls && git status",
    "LANG=C git status",
    "ls -la $dir",
  ])("lets %j run", (command) => {
    expect(answer(policy, command)[0]).toBe("allow");
  });

  test.each([
    "git push",
    "git status --porcelain",
    "git status x",
    "sh -c 'git status'",
    "ls; rm x",
    "ls $(rm x)",
    "./git status",
    "/tmp/git status",
    "git -c core.pager=sh log",
    "LD_PRELOAD=./x.so git status",
    "PATH=. ls",
    "cat src/../../../etc/passwd",
    "cat src/../x",
    "cat src/a src/b",
    "$x",
    "eval ls",
    "env git status",
    "grep x",
    "sort x",
    "git log --output=/etc/x",
    "cat src/*",
  ])("refuses %j", (command) => {
    expect(answer(policy, command)[0]).toBe("deny");
  });

  test.each([
    ["./build.sh", "allow"],
    ["/usr/lib/gcc/cc1 a.c -o a.s", "allow"],
    ["env ../x | sh -c 'y z'", "allow"],
    ["LD_PRELOAD=./x.so ls", "deny"],
    ["$x", "deny"],
  ])("'*' alone is every program, wherever it lies, that is known: %j", (command, verdict) => {
    expect(answer(policyOf("{ allowed: ['*'] }"), command)[0]).toBe(verdict);
  });

  test("'* --version' is what is installed, and no impostor", () => {
    const versions = policyOf("{ allowed: ['* --version'] }");
    expect(answer(versions, "git --version")[0]).toBe("allow");
    expect(answer(versions, "./git --version")[0]).toBe("deny");
  });

  test("says the list in words", () => {
    const { rule } = decide(policy, readShell("rm x"), WHERE);
    expect(rule?.list).toBe("commands.allowed");
    expect(rule?.pattern).toBe(
      "only 'git status', 'git log *', 'npm test *', 'cat src/*', 'ls *' and 1 more",
    );
  });

  test("a pipeline that is listed as a whole runs", () => {
    expect(answer(policy, "grep -r x . | sort")[0]).toBe("allow");
    expect(answer(policy, "grep -r x . | sort | sh")[0]).toBe("deny");
  });

  test("what is isolated is listed too", () => {
    expect(answer(policy, "npm install")[0]).toBe("isolate");
  });

  test("empty means everything that is not denied", () => {
    expect(answer(policyOf("{ allowed: [] }"), "anything")[0]).toBe("allow");
  });
});

test.each(["deny", "ask", "isolate", "allow"])("commands.opaque: %s", (opaque) => {
  const policy = policyOf(`{ opaque: ${opaque}, denied: [d] }`);
  expect(answer(policy, "$x")[0]).toBe(opaque);
  expect(answer(policy, 'eval "$x"')[0]).toBe(opaque);
  expect(answer(policy, "eval ls")[0]).toBe("allow");
  expect(answer(policy, "echo $x")[0]).toBe("allow");
  expect(answer(policy, "$x; d")[0]).toBe("deny");
});

describe("shell_operators: false", () => {
  const policy = policyOf("{ shell_operators: false }");

  test.each([
    "a | b",
    "a; b",
    "a & b",
    "a &",
    "a && b",
    "a || b",
    "a > b",
    "a < b",
    "a <<E\nE",
    "a $(b)",
    "a `b`",
    "a <(b)",
    "(a)",
    "{ a; }",
    "if a; then b; fi",
    "a\nb",
    "sh -c 'a | b'",
    "f() { a; }",
    'echo "open',
  ])("refuses %j", (command) => {
    expect(answer(policy, command).slice(0, 2)).toEqual(["deny", "commands.shell_operators"]);
  });

  test.each(["a b c", "a 'b | c'", "a \\; b", "a $x *.txt", "X=1 a", "! a", "time a"])(
    "lets %j run",
    (command) => {
      expect(answer(policy, command)[0]).toBe("allow");
    },
  );

  test("an argument list has no operators", () => {
    expect(decide(policy, readArgv(["a", "|", "b", ">", "c"]), WHERE).verdict).toBe("allow");
  });
});

describe("approval", () => {
  test("require asks for everything but what is approved beforehand", () => {
    const policy = policyOf(
      "{ denied: [d], ask: ['git push *'] }",
      'mode: enforce, approval: { require: true, auto_approve: ["git *", d] }',
    );
    expect(answer(policy, "git status")[0]).toBe("allow");
    expect(answer(policy, "make").slice(0, 2)).toEqual(["ask", "approval.require"]);
    expect(answer(policy, "git status; make")[0]).toBe("ask");
    expect(answer(policy, "git push").slice(0, 2)).toEqual(["ask", "commands.ask"]);
    expect(answer(policy, "d")[0]).toBe("deny");
    expect(answer(policy, "./git status")[0]).toBe("ask");
  });

  test("where nobody may be asked, what asks is denied", () => {
    const policy = policyOf("{ ask: [a] }", "mode: enforce, approval: { interactive: false }");
    expect(answer(policy, "a")).toEqual(["deny", "commands.ask", "a"]);
    expect(decide(policy, readShell("a"), WHERE).rule?.reason).toMatch(/Nobody can be asked/);
  });

  test("what asks and is isolated is isolated once it is approved, whichever policy says so", () => {
    const approved = (policy: ReturnType<typeof policyOf>, command: string, other?: typeof policy) =>
      decideAll([policy, ...(other === undefined ? [] : [other])], readShell(command), [WHERE]).approved;
    const asks = policyOf("{ ask: [a, b], isolated: [b], opaque: ask }");
    expect(approved(asks, "a")).toBe("allow");
    expect(approved(asks, "b")).toBe("isolate");
    expect(approved(asks, "a; b")).toBe("isolate");
    expect(approved(asks, "$x")).toBe("allow");
    expect(approved(asks, "a", policyOf("{ isolated: [a] }"))).toBe("isolate");
    expect(approved(asks, "a", policyOf("{ isolated: [c] }"))).toBe("allow");
    expect(approved(policyOf("{ ask: [a], isolated: [a] }", "mode: observe"), "a")).toBe("allow");
  });

  test("of two policies, one that lets nobody be asked denies what the other asks", () => {
    const asks = policyOf("{ ask: [a] }");
    const silent = policyOf("{}", "mode: enforce, approval: { interactive: false }");
    for (const [one, other] of [
      [asks, silent],
      [silent, asks],
    ] as const)
      expect(decideAll([one, other], readShell("a"), [WHERE]).verdict).toBe("deny");
    expect(decideAll([asks, policyOf("{}")], readShell("a"), [WHERE]).verdict).toBe("ask");
    expect(decideAll([asks, silent], readShell("b"), [WHERE]).verdict).toBe("allow");
  });

  test("auto_approve alone changes nothing", () => {
    const policy = policyOf("{ denied: [a], ask: [b] }", "mode: enforce, approval: { auto_approve: [a, b] }");
    expect(answer(policy, "a")[0]).toBe("deny");
    expect(answer(policy, "b")[0]).toBe("ask");
  });
});

describe("a policy that narrows another", () => {
  const observe = policyOf("{ denied: [d], isolated: [i] }", "mode: observe");
  const enforce = policyOf("{ isolated: [d], denied: [i] }");
  const both = (command: string) => decideAll([observe, enforce], readShell(command), [WHERE]);

  test("the strictest verdict of both holds, and enforce beats observe", () => {
    expect(both("d")).toMatchObject({ verdict: "deny", mode: "enforce" });
    expect(both("i")).toMatchObject({ verdict: "deny", mode: "enforce" });
    expect(both("x")).toMatchObject({ verdict: "allow", mode: "enforce" });
  });

  test("it never widens", () => {
    expect(decideAll([enforce, policyOf("{}", "mode: observe")], readShell("i"), [WHERE])).toMatchObject({
      verdict: "deny",
      mode: "enforce",
    });
  });
});

const onlyKnown = (raw: string, fragment: string): string =>
  `The value of '${raw}' in '${fragment}' is only known when the command runs`;

test.each([
  ["ls -l src", []],
  ["git status && echo 'a $b'", []],
  ['rm -rf "$X"', [onlyKnown('"$X"', 'rm -rf "$X"')]],
  ["ls > $OUT", [onlyKnown("$OUT", "ls > $OUT")]],
  ["$X push", ["The program is only known when the command runs: '$X'"]],
  [
    "make test",
    [
      "'make' may start programs that the command line does not name; the same rules decide about each when it starts",
    ],
  ],
  [
    "./run.sh",
    [
      "'./run.sh' may start programs that the command line does not name; the same rules decide about each when it starts",
    ],
  ],
])("of '%s' only its run decides this", (command, sentences) => {
  expect(undecidedIn(readShell(command, "sh"))).toEqual(sentences);
});

test("words of an argv are what they are", () => {
  expect(undecidedIn(readArgv(["rm", "$X"]))).toEqual([]);
});

test("of many, eight are told and the rest counted", () => {
  const command = Array.from({ length: 20 }, (_, at) => `ls $a${at}`).join("; ");
  const sentences = undecidedIn(readShell(command, "sh"));
  expect([sentences.length, sentences.at(-1)]).toEqual([9, "12 more are not listed"]);
});

/** As long as a text may be. */
const SIZE = 60_000;
/** Of the processor, in the best of three tries on a busy machine. On a quiet one 100 ms are wanted. */
const MOST_SECONDS = 1;

function denying(rules: readonly string[]) {
  const denied = rules.map((rule) => `    - "${rule}"`).join("\n");
  const text = `id: t\nname: T\nmode: enforce\nfs:\n  deny_write: [${DENIED}]\ncommands:\n  denied:\n${denied}\n`;
  const loaded = parsePolicy(text, "t.yaml");
  if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
  return loaded.ok;
}

const DENIED = Array.from({ length: 40 }, (_, at) => `"$PROJECT/folder-${at}/**/x*"`).join(", ");
const numbered = (rule: (at: number) => string): string[] =>
  Array.from({ length: 1000 }, (_, at) => rule(at));
const repeated = (text: string): string => text.repeat(Math.floor(SIZE / text.length));

test.each([
  [
    "words behind unknown options, rules of any program",
    repeated("sh -c "),
    numbered((at) => `* ${at} *x*y *`),
  ],
  ["the same word at each place", repeated("x -c push "), numbered((at) => `x push z${at} *`)],
  [
    "a rule full of stars and a word of one letter",
    `echo ${repeated("a")}`,
    numbered((at) => `echo *a*a*a*b${at}`),
  ],
  ["an alias of git given many times", `git ${repeated("-c alias.x=x ")} x`, ["sudo *"]],
  ["a setting of git given many times", `git ${repeated("-c a=b ")} x`, ["sudo *"]],
  ["folder after folder", "cd a;rm b;".repeat(1500), ["rm -rf /"]],
  ["20,000 redirects", repeated(">a "), ["sudo *"]],
  ["xargs of xargs", repeated("xargs "), ["sudo *"]],
  ["strings that bash and dash read otherwise", repeated("$'a' "), ["sudo *"]],
])("bounded time: %s", (_, text, rules) => {
  const policy = denying(rules);
  const seconds = Array.from({ length: 3 }, () => secondsOf(() => decide(policy, readShell(text), WHERE)));
  expect(Math.min(...seconds)).toBeLessThan(MOST_SECONDS);
});

function secondsOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

test("a word that an unknown option may own does not hide what a rule refuses", () => {
  const policy = denying(["tool drop *", "tool stop now"]);
  const verdict = (text: string): string => decide(policy, readShell(text), WHERE).verdict;
  for (const text of [
    "tool --a b drop x",
    "tool -a b -c d drop",
    "tool --a b stop now",
    "tool --a b --c d stop now",
  ])
    expect([text, verdict(text)]).toEqual([text, "deny"]);
  for (const text of [
    "tool --a b keep drop",
    "tool list drop",
    "tool --a b stop now later",
    "tool --a drop2 x",
  ])
    expect([text, verdict(text)]).toEqual([text, "allow"]);
});
