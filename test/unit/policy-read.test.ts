import { describe, expect, test } from "vitest";
import { decide, parsePolicy, readArgv, readShell } from "../../broker/policy/index.ts";

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

  test("reads an argument list of 128 KiB, and says of a longer one that it did not", () => {
    const long = ["a", "x".repeat(128 * 1024 - 2)];
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
