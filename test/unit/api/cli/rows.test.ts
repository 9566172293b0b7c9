/** Text of agents on a terminal: where the terminal would continue a row at its left edge, a row of ours begins. */
import { describe, expect, test } from "vitest";
import {
  brokenLine,
  brokenOn,
  cutToWidth,
  printRows,
  sayRows,
  withoutGaps,
} from "../../../../api/cli/terminal/rows.ts";
import type { Terminal } from "../../../../api/cli/terminal/terminal.ts";

function printed(text: string, columns: number | undefined, most?: number): readonly string[] {
  const written: string[] = [];
  const stream = { isTTY: columns !== undefined, columns, write: (some: string) => written.push(some) };
  const terminal = { out: stream, err: stream } as unknown as Terminal;
  printRows(terminal, text, most);
  const [row = ""] = written;
  if (most === undefined) sayRows(terminal, text);
  expect(most === undefined ? written : [row, row]).toEqual([row, row]);
  return row.replace(/\n$/, "").split("\n");
}

/** The rows of a terminal, which continues at its left edge what is longer than it is wide. */
function rowsOfTerminal(lines: readonly string[], columns: number): readonly string[] {
  const wide = (character: string): number =>
    /[\u1100-\u115f\u2e80-\uffff]|[^\0-\uffff]/u.test(character) ? 2 : 1;
  return lines.flatMap((line) => {
    const rows = [""];
    let used = 0;
    for (const character of line) {
      if (used + wide(character) > columns) {
        rows.push("");
        used = 0;
      }
      used += wide(character);
      rows[rows.length - 1] += character;
    }
    return rows;
  });
}

/** `ls -l; touch pwned #`, and after blanks up to the next row a question about `ls -l`. */
function forged(columns: number, blank: string): string {
  const real = "  command  ls -l; touch pwned #";
  const fill = blank.repeat(columns * 24 - real.length).slice(0, columns * 24 - real.length);
  return `${real}${fill}  command  ls -l${blank.repeat(columns).slice(0, columns - 16)}  runs     plainly, in its world`;
}

const WIDTHS = [20, 40, 80, 81, 200];

describe.each(WIDTHS)("on a terminal of %d columns", (columns) => {
  test.each([
    ["blanks", " "],
    ["single blanks between dots", ". "],
    ["words", "harmless "],
    ["one long word", "x"],
    ["wide letters", "漢"],
    ["accented letters", "é"],
  ])("a command cannot write a row of a question, by %s", (_what, blank) => {
    const rows = rowsOfTerminal(printed(forged(columns, blank), columns), columns);
    expect(rows[0]).toMatch(/^ {2}command {2}/);
    const indent = Math.min(12, columns >> 1);
    for (const row of rows.slice(1)) expect(row.slice(0, indent)).toBe(" ".repeat(indent));
  });
});

test("a row holds what fits, is broken at a blank, and loses nothing", () => {
  expect(brokenLine("x".repeat(80), 80)).toBe("x".repeat(80));
  expect(brokenLine("x".repeat(81), 80)).toBe(`${"x".repeat(80)}\n            x`);
  const text = "substrate approve apr_0190c0de-0000-7000-8000-000000000000 --once ".repeat(20);
  const rows = brokenLine(text, 80).split("\n");
  expect(rows.map((row, at) => (at === 0 ? row : row.slice(12))).join("")).toBe(text);
  expect(rows.every((row) => row.length <= 80)).toBe(true);
  expect(rows.join("\n").match(/apr_0190c0de-0000-7000-8000-000000000000/g)).toHaveLength(20);
  expect(brokenLine(`\u001b[1m${"x".repeat(81)}\u001b[22m`, 80)).toBe(
    `\u001b[1m${"x".repeat(80)}\n            x\u001b[22m`,
  );
  expect(
    brokenLine("漢字".repeat(30), 80)
      .split("\n")
      .map((row) => row.trim().length),
  ).toEqual([40, 20]);
  expect(brokenLine(`+${"\t".repeat(20)}end`, 80).split("\n")).toHaveLength(3);
});

test("of many rows the first are shown, and that there are more", () => {
  expect(printed("word ".repeat(100), 40, 2)).toEqual([
    "word word word word word word word word ",
    "            word word word word word w…",
  ]);
  expect(printed("short", 40, 1)).toEqual(["short"]);
});

test("a pipe gets the text as it is", () => {
  const text = forged(80, " ");
  expect(printed(text, undefined)).toEqual([text]);
  expect(printed("one\ntwo", undefined)).toEqual(["one", "two"]);
});

test("a long run of blanks is named, and blanks that lay out text are not", () => {
  expect(withoutGaps(`ls${" ".repeat(1960)}-l`)).toBe("ls[1960 blanks]-l");
  expect(withoutGaps(`${" ".repeat(100)}x`)).toBe("            [100 blanks]x");
  for (const line of [
    "            for name in names:\\x0a                    print(name)",
    "  command  printf '%-16s|'",
    "name            kind",
    "                                        deep()",
  ])
    expect(withoutGaps(line)).toBe(line);
});

test("lines of a here-document and of a program keep their indentation", () => {
  const text = "  command   cat <<E\n            def f():\n                return 1\n            E";
  expect(printed(text, 80)).toEqual(text.split("\n"));
  expect(printed("  because  true\n  means    harmless", 80)).toEqual([
    "  because  true",
    "              means    harmless",
  ]);
});

test("a line of a file cannot look like the heading of another", () => {
  const out = { isTTY: true, columns: 80 } as NodeJS.WriteStream;
  const patch = `diff --git a/x b/x\n+#${" ".repeat(78)}diff --git a/etc b/etc\n`;
  expect(
    brokenOn(out, patch)
      .split("\n")
      .filter((row) => row.startsWith("diff")),
  ).toHaveLength(1);
});

test("a cut line is no wider than the terminal, whatever letters it has", () => {
  for (const letter of ["\u{17000}", "︐", "⌚", "☰", "\u{1b170}"])
    expect(cutToWidth(letter.repeat(9), 9)).toBe(`${letter.repeat(4)}…`);
  for (const text of ["файл", "ไทย", "ünï", "हिन्दी", "Ελλάδα"]) expect(cutToWidth(text, 6)).toBe(text);
});
