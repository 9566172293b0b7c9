import fc from "fast-check";
import { expect, test } from "vitest";
import { decide, decideAll, parsePolicy, readArgv, readShell } from "../../../../broker/policy/index.ts";
import { atLength } from "../../../support/run/extent.ts";

const WHERE = { project: "/projects/app", home: "/home/ann", cwd: "/projects/app" };
const STRICTNESS = { allow: 0, isolate: 1, ask: 2, deny: 3 } as const;

/** It lets everything be written: what commands write is no concern of these. */
function policyOf(commands: object) {
  const fs = { write: ["/**"], deny_write: [] };
  const loaded = parsePolicy(JSON.stringify({ id: "p", name: "P", mode: "enforce", fs, commands }), "p.yaml");
  if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
  return loaded.ok;
}

function strictness(policy: ReturnType<typeof policyOf>, command: string): number {
  const { verdict } = decide(policy, readShell(command), WHERE);
  return STRICTNESS[verdict as keyof typeof STRICTNESS];
}

const shellPiece = fc.constantFrom(
  "rm",
  "-rf",
  "/",
  "sudo",
  "curl",
  "sh",
  "git",
  "push",
  "x",
  "'",
  '"',
  "$(",
  ")",
  "`",
  "|",
  "||",
  "&&",
  "&",
  ";",
  "\n",
  "\\",
  "<<E\n",
  "\nE\n",
  ">",
  "<",
  "<(",
  "${",
  "}",
  "{",
  "(",
  "((",
  "))",
  "[[",
  "]]",
  "$x",
  "~",
  "*",
  "#",
  "if",
  "then",
  "fi",
  "for",
  "in",
  "do",
  "done",
  "case",
  "esac",
  ";;",
  "function",
  "f()",
  "env",
  "-S",
  "xargs",
  "find",
  "-exec",
  "{}",
  "eval",
  "bash",
  "-c",
  "\0",
  "\r",
  "$'",
  "$((",
  "=",
  "a=",
  "!",
  "time",
  "coproc",
  "{a,b}",
  "$IFS",
  "é",
  "\ud800",
);
const shellText = fc
  .array(fc.tuple(shellPiece, fc.constantFrom("", " ")))
  .map((pieces) => pieces.flat().join(""));
const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 400 }),
  shellText,
  fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes).toString()),
);

test("the reader never throws, on any text in either shell", () => {
  const policy = policyOf({ denied: ["sudo *", "curl * | sh"], allowed: ["git *"], warn: ["* x"] });
  fc.assert(
    fc.property(anyText, fc.constantFrom<"sh" | "bash">("sh", "bash"), (text, shell) => {
      decide(policy, readShell(text, shell), WHERE);
    }),
    { numRuns: atLength(3000) },
  );
});

test("the reader never throws, on any argument list", () => {
  const policy = policyOf({ denied: ["sudo *"], allowed: ["git *"] });
  fc.assert(
    fc.property(
      fc.array(fc.oneof(anyText, shellPiece), { maxLength: 12 }),
      (argv) => void decide(policy, readArgv(argv), WHERE),
    ),
  );
});

/** Ways to write one literal word that a shell reads as that word. */
const spellings: readonly ((word: string) => string)[] = [
  (text) => text,
  (text) => `'${text}'`,
  (text) => `"${text}"`,
  (text) => [...text].map((char) => `\\${char}`).join(""),
  (text) => `$'${[...text].map((char) => `\\x${char.charCodeAt(0).toString(16)}`).join("")}'`,
  (text) => `${text.slice(0, 1)}''${text.slice(1)}`,
  (text) => `${text.slice(0, 1)}\\\n${text.slice(1)}`,
];
const around: readonly ((line: string) => string)[] = [
  (line) => line,
  (line) => `true; ${line}`,
  (line) => `(${line})`,
  (line) => `{ ${line}; }`,
  (line) => `x=$(${line})`,
  (line) => `if ${line}; then true; fi`,
  (line) => `env A=1 ${line}`,
  (line) => `nohup timeout 5 ${line}`,
  (line) => `true && ${line} &`,
  (line) => `cat <<E\n$(${line})\nE`,
];

test("all spellings of one command get one verdict", () => {
  const policy = policyOf({
    denied: ["rm -rf /", "git push --force *", "sudo *"],
    ask: ["git push *"],
    isolated: ["npm install *"],
  });
  const lines = [
    "rm -rf /",
    "git push --force origin",
    "sudo id",
    "git push",
    "npm install x",
    "rm -rf build",
    "git status",
    "echo sudo",
  ];
  const places = fc.array(fc.constantFrom(...spellings), { minLength: 5, maxLength: 5 });
  fc.assert(
    fc.property(fc.constantFrom(...lines), places, fc.constantFrom(...around), (line, spelled, wrap) => {
      const written = line
        .split(" ")
        .map((part, at) => spelled[at]?.(part) ?? part)
        .join(" ");
      expect(strictness(policy, wrap(written))).toBe(strictness(policy, line));
    }),
    { numRuns: atLength(2000) },
  );
});

const word = fc.constantFrom(
  "rm",
  "git",
  "push",
  "-rf",
  "-f",
  "/",
  "x",
  "*",
  "npm",
  "install",
  "sudo",
  "sh",
  "curl",
  "--force",
  "$x",
  "~",
);
const pattern = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join(" "));
const command = fc
  .array(fc.tuple(word, fc.constantFrom(" ", " ", " ", " | ", "; ", " && ")), { minLength: 1, maxLength: 8 })
  .map((parts) => parts.flat().join(""));
const lists = fc.record(
  {
    denied: fc.array(pattern, { maxLength: 3 }),
    ask: fc.array(pattern, { maxLength: 2 }),
    isolated: fc.array(pattern, { maxLength: 3 }),
    allowed: fc.array(pattern, { maxLength: 3 }),
  },
  { requiredKeys: [] },
);

test("one more rule of denied never allows more", () => {
  fc.assert(
    fc.property(lists, pattern, command, (commands, added, line) => {
      const more = { ...commands, denied: [...(commands.denied ?? []), added] };
      expect(strictness(policyOf(more), line)).toBeGreaterThanOrEqual(strictness(policyOf(commands), line));
    }),
    { numRuns: atLength(2000) },
  );
});

test("one more rule of any list that refuses never makes a verdict weaker", () => {
  const list = fc.constantFrom<"denied" | "ask" | "isolated">("denied", "ask", "isolated");
  fc.assert(
    fc.property(lists, list, pattern, command, (commands, key, added, line) => {
      const before = policyOf({ ...commands, allowed: [] });
      const after = policyOf({ ...commands, allowed: [], [key]: [...(commands[key] ?? []), added] });
      expect(strictness(after, line)).toBeGreaterThanOrEqual(strictness(before, line));
    }),
    { numRuns: atLength(1500) },
  );
});

test("a policy that narrows never widens, and says what the stricter of the two says", () => {
  const modes = fc.constantFrom<"enforce" | "observe">("enforce", "observe");
  fc.assert(
    fc.property(lists, lists, modes, command, (assigned, narrowing, mode, line) => {
      const [one, other] = [policyOf(assigned), { ...policyOf(narrowing), mode }];
      const both = decideAll([one, other], readShell(line), [WHERE]);
      const strictest = Math.max(strictness(one, line), strictness(policyOf(narrowing), line));
      expect(both.mode).toBe("enforce");
      expect(STRICTNESS[both.verdict as keyof typeof STRICTNESS]).toBe(strictest);
    }),
    { numRuns: atLength(1000) },
  );
});

test("no rule is missed because of where it stands among many", () => {
  const options = fc.constantFrom(
    "-rf",
    "--force",
    "-C",
    "x",
    "/",
    "//",
    "./x",
    "a=b",
    "--",
    "origin",
    "$x",
    "~/x",
  );
  const words = fc.array(fc.oneof(word, options), { minLength: 1, maxLength: 5 }).map((all) => all.join(" "));
  fc.assert(
    fc.property(fc.array(words, { minLength: 1, maxLength: 12 }), words, (patterns, line) => {
      const alone = patterns.filter(
        (one) => strictness(policyOf({ denied: [one] }), line) === STRICTNESS.deny,
      );
      const { verdict, rule } = decide(policyOf({ denied: patterns }), readShell(line), WHERE);
      expect(verdict === "deny").toBe(alone.length > 0);
      if (alone.length > 0) expect(alone).toContain(rule?.pattern);
    }),
    { numRuns: atLength(2000) },
  );
});
