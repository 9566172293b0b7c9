import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decide, readArgv, readShell } from "../../../../broker/policy/index.ts";
import { learn, policy, WHERE } from "../../../support/policy/learned.ts";

describe("for any observed commands, a proposal without '*'", () => {
  const word = fc.constantFrom(
    "a",
    "b",
    "src/x.ts",
    "-v",
    "--all",
    "-rf",
    "../y",
    "~/z",
    "/etc/passwd",
    "x y",
    "main",
  );
  const program = fc.constantFrom(
    "make",
    "git",
    "npm",
    "cat",
    "rm",
    "./run",
    "/usr/bin/tool",
    "env",
    "timeout",
    "xargs",
  );
  const argv = fc.tuple(program, fc.array(word, { maxLength: 4 })).map(([name, words]) => [name, ...words]);
  const TEXT = `id: p\nname: P\nmode: enforce\ncommands:\n  allowed: ["ls *", "git status"]\n  denied: ["rm -rf *", "git push *"]\n  ask: ["npm publish *"]\n`;
  const strictness = { allow: 0, isolate: 1, ask: 2, deny: 3 } as const;

  test("lets no command pass that nobody ran and that was stopped before", () => {
    fc.assert(
      fc.property(
        fc.array(argv, { minLength: 1, maxLength: 6 }),
        fc.array(argv, { maxLength: 12 }),
        (seen, others) => {
          const before = policy(TEXT);
          const after = policy(
            learn(
              TEXT,
              seen.map((words) => ({ argv: words, verdict: "deny" })),
            ).text,
          );
          const parts = new Set(
            seen.flatMap((words) =>
              readArgv(words).fragments.map(({ words: each }) => meaning(each.map(({ text }) => text))),
            ),
          );
          const variations = [...others, ...seen.flatMap(variationsOf)];
          for (const words of variations) {
            const [old, now] = [before, after].map((one) => decide(one, readArgv(words), WHERE).verdict);
            const gentler = strictness[now as "deny"] < strictness[old as "deny"];
            const isSeen = readArgv(words).fragments.every(({ words: each }) => {
              const texts = each.map(({ text }) => text);
              return parts.has(meaning(texts)) || decide(before, readArgv(texts), WHERE).verdict === "allow";
            });
            if (gentler && !isSeen) throw new Error(`${JSON.stringify(words)} was ${old} and is ${now}`);
          }
        },
      ),
      { numRuns: 150 },
    );
  });

  test("lets no line pass with a part that was denied", () => {
    fc.assert(
      fc.property(fc.array(argv, { minLength: 1, maxLength: 4 }), (seen) => {
        const after = policy(
          learn(
            TEXT,
            seen.map((words) => ({ argv: words })),
          ).text,
        );
        for (const cmd of ["rm -rf x", "git push", "ls; rm -rf /"])
          expect(decide(after, readShell(cmd), WHERE).verdict).toBe("deny");
      }),
      { numRuns: 40 },
    );
  });
});

/** The same words with options where they stand, in any order and spelt apart or together, are one command to a pattern. */
function meaning(words: readonly string[]): string {
  const [program = "", ...rest] = words;
  const options = rest.filter((text) => text.startsWith("-"));
  const letters = options.flatMap((text) => (text.startsWith("--") ? [text] : [...text.slice(1)]));
  return JSON.stringify([
    program,
    [...new Set(letters)].sort(),
    rest.filter((text) => !text.startsWith("-")),
  ]);
}

function variationsOf(words: readonly string[]): readonly (readonly string[])[] {
  return [
    [...words, "more"],
    [...words, "--unseen"],
    words.slice(0, -1),
    ["sudo", ...words],
    ["sh", "-c", "id"],
    ...words.map((text, index) => words.with(index, `${text}x`)),
  ].filter((each) => each.length > 0);
}
