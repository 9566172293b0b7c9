import fc from "fast-check";
import { expect, test } from "vitest";
import { decide, parsePolicy, readArgv, readShell } from "../../broker/policy/index.ts";

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
    { numRuns: 3000 },
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
    { numRuns: 2000 },
  );
});
