import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type ReadCommand,
  decide,
  parsePolicy,
  readArgv,
  readShell,
  withVariables,
} from "../../../../../broker/policy/index.ts";
import {
  MAX_READING_MS,
  PATIENCE_MS,
  UNWATCHED_LENGTH,
  readInTime,
} from "../../../../../broker/policy/shell/read.ts";
import { disguised } from "../../../../corpus/random-scripts.ts";
import { leastCpuMs } from "../../../../support/processes/cost.ts";
import { atLength } from "../../../../support/run/extent.ts";

const words = (command: string): string[][] =>
  readShell(command).fragments.map((one) => one.words.map((word) => word.text));

describe("the shell reader", () => {
  test("gives every simple command in source order with the text it was written as", () => {
    const { fragments } = readShell('A=1 ls "a b" | wc -l > out && (cd x; make)');
    expect(fragments.map((one) => one.fragment)).toEqual(['A=1 ls "a b"', "wc -l > out", "cd x", "make"]);
    expect(fragments[0]).toMatchObject({ start: 0, end: 12, depth: 0, assignments: [{ name: "A" }] });
    expect(fragments[1]?.redirects).toMatchObject([{ operator: ">", target: { text: "out" } }]);
    expect(fragments.map((one) => one.moves)).toEqual([[], [], [], ["x"]]);
  });

  test("tells literal, glob and dynamic words apart", () => {
    const [one] = readShell("a 'b*' c* d$x \"$HOME/e\" ~/f {g,h} $(i)").fragments;
    expect(one?.words.map((word) => word.kind[0]).join("")).toBe("llgdlllld");
  });

  test("a wrapper and what it runs are both there", () => {
    expect(words("sudo -u bob env A=1 rm x")).toEqual([
      ["sudo", "-u", "bob", "env", "A=1", "rm", "x"],
      ["env", "A=1", "rm", "x"],
      ["rm", "x"],
    ]);
  });

  test("puts everything inside a stage into the pipeline", () => {
    expect(readShell("(a; b) | sudo c").pipelines).toEqual([
      [
        [0, 1],
        [2, 3],
      ],
    ]);
  });

  test("a compound command's redirect has a place of its own", () => {
    expect(readShell("{ a; } > out").fragments[0]).toMatchObject({
      words: [],
      redirects: [{ operator: ">" }],
    });
  });

  test("reads an argument list as it stands", () => {
    const { fragments, form, operator } = readArgv(["a", "$(b)", "c;d"]);
    expect(fragments.map((one) => one.words.map((word) => word.text))).toEqual([["a", "$(b)", "c;d"]]);
    expect([form, operator]).toEqual(["argv", null]);
  });

  test("reads an argument list of 256 KiB, and says of a longer one that it did not", () => {
    const long = ["a", "x".repeat(256 * 1024 - 2)];
    expect(readArgv(long)).toMatchObject({ fragments: [{ words: [{ text: "a" }, {}] }], incomplete: false });
    expect(readArgv([...long, ""])).toMatchObject({ fragments: [], opaque: [{}], incomplete: true });
    // A script among the words has the limit of a script.
    expect(readArgv(["sh", "-c", "true ".repeat(20_000)]).incomplete).toBe(true);
  });

  test("an empty command has nothing in it", () => {
    for (const read of [readShell(""), readShell(" \n# x"), readArgv([])]) {
      expect(read).toMatchObject({ fragments: [], opaque: [], incomplete: false });
    }
  });

  test("reads sixty commands and the sixty-first", () => {
    expect(words(`${"true;".repeat(60)}sudo id`)).toContainEqual(["sudo", "id"]);
  });

  test.each(['echo "open', "if true; then", "a | | b", ")", "ls;;", "$(", "a\0b"])(
    "%j is opaque, and what was read stays",
    (command) => {
      const read = readShell(command);
      expect(read.incomplete).toBe(true);
      expect(read.opaque.length).toBeGreaterThan(0);
    },
  );

  test("unwraps eight levels and no more", () => {
    const levels = (n: number) => readShell(`${"nohup ".repeat(n)}sudo id`);
    expect(levels(8).fragments.at(-2)?.words[0]?.text ?? "").toBe("nohup");
    expect(levels(7).incomplete).toBe(false);
    expect(levels(12)).toMatchObject({ incomplete: true });
  });
});

const policy = parsePolicy(
  "{ id: p, name: P, mode: enforce, commands: { denied: ['sudo *'], opaque: deny } }",
  "p.yaml",
);
const WHERE = { project: "/p", home: "/h", cwd: "/p" };

const LARGE: readonly (readonly [string, string])[] = [
  ["1 MB of text", "a ".repeat(524_288)],
  ["1 MB in quotes", `echo '${"x".repeat(1_048_576)}'`],
  ["10,000 nested $(", "$(".repeat(10_000)],
  ["10,000 nested and closed $(", `${"$(".repeat(10_000)}x${")".repeat(10_000)}`],
  ["10,000 nested ${", "${x:-".repeat(10_000)],
  ["10,000 subshells", "(".repeat(10_000)],
  ["10,000 groups", "{ ".repeat(10_000)],
  ["10,000 nested ifs", "if ".repeat(10_000)],
  ["16,000 here-documents", "<<a ".repeat(16_000)],
  ["20,000 functions", "f()".repeat(20_000)],
  ["60,000 backquotes", "`".repeat(60_000)],
  ["12,000 substitutions with an open quote", '$(") '.repeat(12_000)],
  ["9,000 sums with an open quote", '$((")) '.repeat(9_000)],
  ["10,000 wrappers", "env ".repeat(10_000)],
  ["10,000 evals", "eval ".repeat(10_000)],
  ["31,000 words", `git push N ${"x ".repeat(31_000)}`],
  ["31,000 words to remove", `rm -rf ${"x ".repeat(31_000)}`],
  ["7,000 pipes", `${"a|".repeat(7_000)}$x`],
];

/** A long script that somebody means: what the others may cost is told by what this one costs, in turn with them. */
const ORDINARY = "ls -l /tmp; ".repeat(1000);

/** Measured: the costliest three take two to four times as long, all others less. */
const AT_MOST = 10;

test.each(LARGE)("%s costs at most ten times a script of 1,000 commands", (_what, command) => {
  if ("problems" in policy) throw new Error("the test's policy does not load");
  const { ok } = policy;
  const cost = (text: string): number => {
    const start = performance.now();
    decide(ok, readShell(text), WHERE);
    return performance.now() - start;
  };
  expect(decide(ok, readShell(command), WHERE).verdict).toBe("deny");
  const ratios = [1, 2, 3, 4, 5].map(() => cost(command) / cost(ORDINARY));
  expect(Math.min(...ratios)).toBeLessThan(AT_MOST);
});

test("a long script with a quoted substitution in each line is read", () => {
  const script = Array.from({ length: 900 }, (_, line) => `x${line}=$(basename "$file" .ts)\n`).join("");
  const { fragments, opaque } = readShell(script);
  expect(opaque).toEqual([]);
  expect(fragments.length).toBeGreaterThan(900);
});

const LONG = UNWATCHED_LENGTH + 1;

test("a reading that never ends is ended, and the next one is not", () => {
  let turns = 0;
  const forever = (): void => {
    for (;;) turns += 1;
  };
  expect(readInTime(LONG, forever)).toBeUndefined();
  expect(turns).toBeGreaterThan(0);
  expect(readInTime(LONG, () => "read")).toBe("read");
});

test("a reading that had no processor is begun once more, and given the time for it", () => {
  const room = new Int32Array(new SharedArrayBuffer(4));
  let begun = 0;
  // As on a machine that others keep busy: the clock runs, and nothing is done.
  const delayed = (): string => {
    begun += 1;
    Atomics.wait(room, 0, 0, MAX_READING_MS + 100);
    return "read";
  };
  expect(readInTime(LONG, delayed)).toBe("read");
  expect(begun).toBe(2);
});

test.each([1, LONG])("what a reading of %d characters throws is thrown on, the same object", (length) => {
  const error = new RangeError("the stack has ended");
  let caught: unknown;
  try {
    readInTime(length, () => {
      throw error;
    });
  } catch (thrown) {
    caught = thrown;
  }
  expect(caught).toBe(error);
});

test("the end of the stack is a RangeError of this realm", () => {
  const deeper = (): number => 1 + deeper();
  expect(() => readInTime(LONG, deeper)).toThrow(RangeError);
});

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
const WORST_RATIO = 25;

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
    { numRuns: atLength(2000) },
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
    { numRuns: atLength(2000) },
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
      { numRuns: atLength(1500) },
    );
  });

  test("gets the verdict of the plain command", () => {
    fc.assert(
      fc.property(disguised, ({ words, text: given }) => {
        const plain = decide(policy.ok, readShell(words.join(" ")), WHERE);
        const { verdict, rule } = decide(policy.ok, readShell(given), WHERE);
        expect([verdict, rule?.pattern]).toEqual([plain.verdict, plain.rule?.pattern]);
      }),
      { numRuns: atLength(2000) },
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
    const names = ["A", "PAGER", "NODE_OPTIONS", "BASH_ENV", "HOME"];
    const env = Object.fromEntries(names.map((name) => [name, value]));
    const read = leastCpuMs(() => withVariables(readArgv(["true"]), env));
    expect(read / names.length / leastCpuMs(() => readShell(ORDINARY))).toBeLessThan(WORST_RATIO);
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
    { numRuns: atLength(60), examples: SLOW.map((piece) => [bySixty(piece)]) },
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
