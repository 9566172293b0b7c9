import { expect, test } from "vitest";
import { decide, parsePolicy, readShell } from "../../broker/policy/index.ts";

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };
/** As long as a text may be. */
const SIZE = 60_000;
/** Of the processor, in the best of three tries on a busy machine. On a quiet one 100 ms are wanted. */
const MOST_SECONDS = 1;

function policyOf(rules: readonly string[]) {
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
  const policy = policyOf(rules);
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
  const policy = policyOf(["tool drop *", "tool stop now"]);
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
