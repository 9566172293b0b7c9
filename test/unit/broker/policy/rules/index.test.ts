import fc from "fast-check";
import { expect, test } from "vitest";
import { parsePolicy, readShell } from "../../../../../broker/policy/index.ts";
import { stageMatches } from "../../../../../broker/policy/rules/match.ts";
import { prepare } from "../../../../../broker/policy/rules/prepare.ts";
import { matchingRules, readingOf } from "../../../../../broker/policy/rules/rule-set.ts";

const PROGRAMS = ["git", "rm", "npm", "cargo", "dd", "find", "pip3", "chmod", "kubectl", "x"] as const;
const WORDS = [
  ...[
    "push",
    "install",
    "i",
    "add",
    "origin",
    "x",
    "777",
    "0777",
    "/",
    "//",
    "/etc/",
    "/etc",
    "./x",
    "../app/x",
    ".",
  ],
  ...[
    "-f",
    "-rf",
    "-r",
    "--force",
    "--forc",
    "--recursive",
    "-C",
    "--prefix",
    "--",
    "of=/x",
    "-delete",
    "+nightly",
  ],
  ...["*", "x*", "--flag=*", "-o*", "~", "~/x", "$HOME/x"],
  ...[
    "y/etc",
    "y/etc/",
    "*/./x",
    "*x",
    "*/x",
    "*/etc/",
    "*sh",
    "*7",
    "p*h",
    "~/*",
    "*.",
    "$x",
    "a$x",
    "$(x)x",
  ],
] as const;
const words = fc.array(fc.constantFrom(...WORDS), { maxLength: 4 });
/** Words that come to the same thing for some program. */
const SAME = [
  ["./x", "../app/x", "/projects/app/x", "/projects/app//x/"],
  ["/", "//", "/etc/.."],
  ["/etc", "/etc/", "/usr/../etc"],
  ["-r", "-R", "--recursive"],
  ["i", "install", "add"],
  ["777", "0777"],
  ["~", "$HOME", "/home/ann"],
  ["--force", "--forc", "-f"],
] as const;
const starred = (word: string): readonly string[] =>
  /^[\w/.]+$/.test(word) ? [1, 2, 3, 4].map((length) => `*${word.slice(-length)}`) : [];
const respelled = (word: string): fc.Arbitrary<string> =>
  fc.constantFrom(word, ...starred(word), ...(SAME.find((row) => row.some((one) => one === word)) ?? []));

const written = fc
  .tuple(fc.constantFrom(...PROGRAMS), words)
  .map(([program, others]) => [program, ...others]);
/** A command with rules that say some of its words, and rules that say any. */
const both = written.chain((command) => {
  const [program = "", ...others] = command;
  const some = fc
    .tuple(
      fc.subarray(others),
      fc.constantFrom([], ["*"]),
      fc.constantFrom(program, program === "x" ? "rm" : program),
    )
    .chain(([own, rest, name]) => fc.tuple(...own.map(respelled)).map((again) => [name, ...again, ...rest]));
  const rules = fc.array(fc.oneof(some, written), { minLength: 1, maxLength: 15 });
  return fc.tuple(fc.constant(command.join(" ")), rules);
});

/** `x` leads to `rm`: it is known by both names, and sorts its words by its own habits. */
const where = {
  project: "/projects/app",
  home: "/home/ann",
  cwd: "/projects/app",
  resolve: (name: string) => (name === "x" ? { path: "/usr/bin/x", real: "/bin/rm" } : null),
};

test("the rules that are looked at are all that match, whatever the others are", () => {
  let matched = 0;
  fc.assert(
    fc.property(both, fc.boolean(), ([command, lines], allowing) => {
      const patterns = lines.map((one) => one.join(" "));
      const commands = allowing ? { allowed: patterns } : { denied: patterns };
      const loaded = parsePolicy(JSON.stringify({ id: "p", name: "P", commands }), "p.yaml");
      if (!("ok" in loaded)) throw new Error("The policy must load");
      const { rules } = loaded.ok;
      for (const fragment of readShell(command).fragments) {
        const prepared = prepare(fragment, where);
        if (prepared === null) continue;
        const wanted = rules.all.filter(({ stages: [stage], list }) => {
          return stage !== undefined && stageMatches(stage, prepared, readingOf(list));
        });
        matched += wanted.length;
        expect(new Set(matchingRules(rules, prepared))).toEqual(new Set(wanted));
      }
    }),
    // A pattern that is a path is compared without its last slash, too.
    { numRuns: 3000, examples: [[["rm y/etc", [["rm", "*/etc/"], ["rm"]]], false]] },
  );
  expect(matched).toBeGreaterThan(2000);
});
