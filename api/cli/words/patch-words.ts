/** Formats a diff for a terminal: coloured, with terminal sequences escaped. Pure. */
import type { DiffChange, DiffReply } from "../../../schemas/generated/types.ts";
import type { Colours } from "./colours.ts";
import { harmless, harmlessLine } from "../terminal/terminal.ts";

/** Paints a patch line by line. Tabs stay, because tabs only move a terminal's cursor forward. */
export function paintPatch(colours: Colours, patch: string): string {
  let inHunk = false;
  const painted = withoutBytes(patch.split("\n")).map((line) => {
    if (line.startsWith("diff --git ")) inHunk = false;
    else if (line.startsWith("@@ ")) inHunk = true;
    return paintLine(colours, line, inHunk);
  });
  return painted.join("\n");
}

/** Replaces binary patches by the sizes of the file. */
function withoutBytes(lines: readonly string[]): readonly string[] {
  const shown: string[] = [];
  let sizes: string[] | undefined;
  for (const line of lines) {
    if (line === "GIT binary patch") sizes = [];
    else if (sizes === undefined) shown.push(line);
    else if (line.startsWith("literal ")) sizes.push(line.slice("literal ".length));
    else if (line.startsWith("diff --git ") || (line === "" && sizes.length === 2)) {
      const [after, before] = sizes;
      shown.push(`Binary file: ${before} bytes before, ${after} bytes after`, ...(line === "" ? [] : [line]));
      sizes = undefined;
    }
  }
  return shown;
}

function paintLine(colours: Colours, line: string, inHunk: boolean): string {
  const text = visible(line);
  if (text === "") return "";
  if (!inHunk) return colours.bold(text);
  if (line.startsWith("@@ ")) return colours.cyan(text);
  if (line.startsWith("+")) return colours.green(text);
  if (line.startsWith("-")) return colours.red(text);
  return line.startsWith("\\") ? colours.dim(text) : text;
}

/** Escapes control characters except tabs; a carriage return at the line's end is escaped too. */
function visible(line: string): string {
  return line.split("\t").map(harmless).join("\t");
}

/** Width of the bar in a stat line, in columns. */
const BAR = 40;

const MARKS: Readonly<Record<DiffChange["kind"], string>> = {
  write: "+",
  mod: "~",
  delete: "-",
  dir: "d",
  link: "l",
  mode: "m",
};

/** Formats the stat of a diff: `~ src/a.ts | 3 ++-` for each path, then the sum. */
export function statLines(colours: Colours, { changes }: DiffReply): readonly string[] {
  const width = Math.min(60, ...[Math.max(0, ...changes.map(({ path }) => harmlessLine(path).length))]);
  const most = Math.max(1, ...changes.map(linesOf));
  const rows = changes.map((change) => {
    const name = `${MARKS[change.kind]} ${harmlessLine(change.path).padEnd(width)}`;
    return `${name} | ${amountOf(colours, change, most)}${change.autorun ? colours.yellow("  runs by itself") : ""}`;
  });
  const sum = (count: (change: DiffChange) => number): number =>
    changes.reduce((total, change) => total + count(change), 0);
  const total = `${changes.length === 1 ? "1 path" : `${changes.length} paths`} changed, ${sum(({ added }) => added ?? 0)} lines added, ${sum(({ removed }) => removed ?? 0)} removed`;
  return [...rows, total];
}

function linesOf({ added, removed }: DiffChange): number {
  return (added ?? 0) + (removed ?? 0);
}

function amountOf(colours: Colours, change: DiffChange, most: number): string {
  if (change.kind === "dir") return "new folder";
  if (change.binary === true) return "no text";
  if (change.added === null || change.removed === null) return "not compared";
  const scale = Math.min(1, BAR / most);
  const bar = (lines: number): number => (lines === 0 ? 0 : Math.max(1, Math.round(lines * scale)));
  const signs = `${colours.green("+".repeat(bar(change.added)))}${colours.red("-".repeat(bar(change.removed)))}`;
  return `${linesOf(change)} ${signs}`.trimEnd();
}
