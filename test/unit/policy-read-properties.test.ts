import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  decide,
  parsePolicy,
  type ReadCommand,
  readArgv,
  readShell,
  withVariables,
} from "../../broker/policy/index.ts";
import { MAX_READING_MS, PATIENCE_MS } from "../../broker/policy/shell/read.ts";
import { disguised } from "../corpus/random-scripts.ts";

const WHERE = { project: "/p", home: "/h", cwd: "/p" };
const PIECES = [
  ..."'\"`$(){}[]|&;<>#!\\~*?=\n\r\t ",
  "$(",
  "${",
  "$((",
  "$'",
  "<(",
  "<<E\n",
  "\nE\n",
  "<<<",
  "((",
  "[[ ",
  " ]]",
  "{a,b}",
  "$IFS",
  '"$@"',
  "IFS=x ",
  "HOME=/ ",
  "if ",
  "then ",
  "fi;",
  "case x in ",
  "esac",
  "for x in ",
  "do ",
  "done;",
  "f() ",
  "time ",
  "coproc ",
  "sh -c '",
  "env -S '",
  "xargs -I{} ",
  "find . -exec ",
  " \\;",
  "git -c alias.x='!",
  "tar -I ",
  "printf '%s",
  "echo ",
  "| sh\n",
  "eval ",
  "LD_PRELOAD=",
  "PAGER=",
  "\ue024",
  "\ud800",
  "\u0000",
  "é",
];
const text = fc.oneof(
  fc.array(fc.constantFrom(...PIECES), { maxLength: 60 }).map((pieces) => pieces.join("")),
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
);
const shell = fc.constantFrom<"sh" | "bash">("sh", "bash");

/** What somebody may mean: the others' cost is told by this one's, in turn with them. */
const ORDINARY = "ls -l /tmp; ".repeat(1000);
const AT_MOST = 25;

test("the reader throws on no text, and all that it finds lies in the text", () => {
  fc.assert(
    fc.property(text, shell, (given, language) => {
      const read = readShell(given, language);
      for (const one of read.fragments) {
        expect(one.start).toBeGreaterThanOrEqual(0);
        expect(one.end).toBeGreaterThanOrEqual(one.start);
        expect(one.end).toBeLessThanOrEqual(given.length);
      }
      for (const index of read.pipelines.flat(2)) expect(read.fragments[index]).toBeDefined();
    }),
    { numRuns: 4000 },
  );
});

test.each(["${`\\", "$((`\\", '"${x'])(
  "the end of what stops in the middle lies in the text: %j",
  (given) => {
    for (const { end } of readShell(given).fragments) expect(end).toBeLessThanOrEqual(given.length);
  },
);

test("what the shell itself runs stands in the text as it is shown", () => {
  fc.assert(
    fc.property(text, shell, (given, language) => {
      const written = readShell(given, language).fragments.filter(({ depth }) => depth === 0);
      for (const one of written) {
        const shown = one.fragment.replace(/…$/, "");
        // A script in backquotes has a text of its own when backslashes are taken out of it.
        if (!given.includes("`")) expect(given.slice(one.start, one.end)).toContain(shown);
      }
    }),
    { numRuns: 2000 },
  );
});

test("variables of a request are read without a throw, and take nothing away", () => {
  const name = fc.constantFrom(
    "PAGER",
    "LD_PRELOAD",
    "GIT_SSH_COMMAND",
    "GIT_CONFIG_KEY_0",
    "NODE_OPTIONS",
    "X",
  );
  fc.assert(
    fc.property(text, fc.dictionary(name, text), (given, variables) => {
      const read = readShell(given);
      const more = withVariables(read, variables);
      expect(more.fragments.length).toBeGreaterThanOrEqual(read.fragments.length);
      expect(more.opaque.length).toBeGreaterThanOrEqual(read.opaque.length);
    }),
  );
});

describe("a command in disguise", () => {
  const policy = parsePolicy(
    "{ id: p, name: P, mode: enforce, commands: { opaque: deny, ask: ['rm *', 'sudo *', 'git *', 'npm *', 'curl *'] } }",
    "p.yaml",
  );
  if ("problems" in policy) throw new Error("the test's policy does not load");

  test("is read word for word, and nothing about it is opaque", () => {
    fc.assert(
      fc.property(disguised, ({ words, text: given }) => {
        const read = readShell(given);
        expect(read.opaque).toEqual([]);
        expect(literalCalls(read)).toContain(JSON.stringify(words));
      }),
      { numRuns: 3000 },
    );
  });

  test("gets the verdict of the plain command", () => {
    fc.assert(
      fc.property(disguised, ({ words, text: given }) => {
        const plain = decide(policy.ok, readShell(words.join(" ")), WHERE);
        const { verdict, rule } = decide(policy.ok, readShell(given), WHERE);
        expect([verdict, rule?.pattern]).toEqual([plain.verdict, plain.rule?.pattern]);
      }),
      { numRuns: 2000 },
    );
  });
});

function literalCalls(read: ReadCommand): string[] {
  return read.fragments.map((one) => JSON.stringify(one.words.map((word) => word.text)));
}

test.each(["$(", '"$(', "<(", "{ "])(
  "64 KiB below 190 levels of %s are not read, and below 20 are",
  (open) => {
    const nested = (levels: number): string =>
      `${open.repeat(levels)}${"echo aaaa bbbb; ".repeat(3600)}${open.includes("{") ? ";}" : open.includes('"') ? ')"' : ")"}`;
    expect(readShell(nested(190)).opaque[0]?.reason).toMatch(/levels deep/);
    expect(readShell(nested(20)).opaque.every(({ reason }) => !/levels deep/.test(reason))).toBe(true);
  },
);

test.each(["y", "a[", "a[]", "`", "$(", "'", '"', "a=b ", "| "])(
  "values of variables made of %j take no longer than a script of their length",
  (piece) => {
    const value = piece.repeat(Math.floor(60_000 / piece.length));
    const env = Object.fromEntries(
      ["A", "PAGER", "NODE_OPTIONS", "BASH_ENV", "HOME"].map((name) => [name, value]),
    );
    const cost = (act: () => void): number => {
      const start = performance.now();
      act();
      return performance.now() - start;
    };
    const ratios = [1, 2, 3].map(
      () => cost(() => withVariables(readArgv(["true"]), env)) / cost(() => readShell(ORDINARY)),
    );
    expect(Math.min(...ratios)).toBeLessThan(AT_MOST);
  },
);

/** Pieces that, 60 KB of them, kept the parser for a quarter to a whole second. */
const SLOW = ["$(=}*", "<(f() [}'sh -c '", "}~ ]]<(", " \\;}<(find . -exec "];
const bySixty = (piece: string): string => piece.repeat(Math.ceil(60_000 / piece.length));

test("every text of 60,000 characters is read, or given up in time", { timeout: 300_000 }, () => {
  const long = fc
    .array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 6 })
    .map((pieces) => bySixty(pieces.join("")));
  const cost = (given: string): number => {
    const start = performance.now();
    readShell(given);
    return performance.now() - start;
  };
  fc.assert(
    fc.property(long, (given) => {
      expect(Math.min(...[1, 2, 3].map(() => cost(given)))).toBeLessThan(2 * (MAX_READING_MS + PATIENCE_MS));
    }),
    { numRuns: 60, examples: SLOW.map((piece) => [bySixty(piece)]) },
  );
});

test.each(SLOW)("a text of many %j is not allowed, and the next one is read as ever", (piece) => {
  const allowed = parsePolicy("{ id: p, name: P, mode: enforce, commands: { opaque: ask } }", "p.yaml");
  if ("problems" in allowed) throw new Error("the test's policy does not load");
  const read = readShell(bySixty(piece));
  expect(read.incomplete).toBe(true);
  expect(decide(allowed.ok, read, WHERE).verdict).toBe("ask");
  expect(literalCalls(readShell("rm -rf x"))).toEqual([JSON.stringify(["rm", "-rf", "x"])]);
});
