/**
 * Parses patterns of deny lists into path segments. Pure.
 *
 * `*`, `?` and `[…]` stay inside one segment and match a leading dot; `**` as a whole segment matches any number of folders,
 * including zero; `{a,b}` expands to its words; a backslash escapes the next character. A match covers everything below, so a
 * final `/**` has no effect.
 */
export type Segment =
  | { readonly kind: "literal"; readonly name: string }
  | { readonly kind: "glob"; readonly pattern: string }
  | { readonly kind: "any" }
  /** Any number of folders of a working tree, excluding git folders and installed packages. Only in seals. */
  | { readonly kind: "tree" };

/** Thrown for a pattern that expands to too many patterns. */
export class TooManyWords extends Error {
  override readonly name = "TooManyWords";
}

const MAX_WORDS = 256;

/** Parses an absolute pattern; returns the segments of each brace expansion. Throws {@link TooManyWords}. */
export function parsePattern(pattern: string): readonly (readonly Segment[])[] {
  return expandBraces(pattern).map((word) => normal(splitSegments(word).map(segment)));
}

/** Why a deny pattern is unusable, or undefined. Unknown syntax must not be taken for a literal name. */
export function patternComplaint(pattern: string): string | undefined {
  if (pattern.startsWith("!")) return "it begins with '!': a deny list has no exceptions";
  if (/(^|[^\\])[@!+?*]\(/.test(pattern))
    return "it holds an extended glob such as '@(…)': spell the names out";
  if (/(^|[^\\])\[[^\]]*$/.test(pattern))
    return "it holds '[' without ']': write '\\[' for the letter itself";
  try {
    const everything = parsePattern(pattern).some((segments) => segments.length === 0);
    return everything && pattern.startsWith("/") ? "it denies everything" : undefined;
  } catch (error) {
    if (error instanceof TooManyWords) return `it stands for more than ${MAX_WORDS} patterns`;
    throw error;
  }
}

/** Escapes a path to a pattern for this path alone. */
export function literalPattern(path: string): string {
  return path.replace(/[\\*?[\]{}]/g, "\\$&");
}

export function isLiteral(segments: readonly Segment[]): boolean {
  return segments.every(({ kind }) => kind === "literal");
}

/** Returns the path spelled by the leading literal segments. */
export function literalPrefix(segments: readonly Segment[]): string {
  const end = segments.findIndex(({ kind }) => kind !== "literal");
  return pathOf(end < 0 ? segments : segments.slice(0, end));
}

/** Joins literal segments to a path. */
export function pathOf(segments: readonly Segment[]): string {
  return `/${segments.map((each) => (each.kind === "literal" ? each.name : "")).join("/")}`;
}

export function segmentsOf(path: string): readonly Segment[] {
  return path
    .split("/")
    .filter((name) => name !== "")
    .map((name) => ({ kind: "literal", name }));
}

/** Moves a pattern to another folder: replaces its literal prefix. */
export function movedTo(folder: string, segments: readonly Segment[]): readonly Segment[] {
  const end = segments.findIndex(({ kind }) => kind !== "literal");
  return normal([...segmentsOf(folder), ...(end < 0 ? [] : segments.slice(end))]);
}

function segment(text: string): Segment {
  if (/^\*{2,}$/.test(text)) return { kind: "any" };
  if (/(^|[^\\])(\\\\)*[*?[]/.test(text)) return { kind: "glob", pattern: text };
  return { kind: "literal", name: text.replace(/\\(.)/gs, "$1") };
}

/** Removes `.`, `..`, empty segments, repeated `**`, and a final `**`. */
function normal(segments: readonly Segment[]): readonly Segment[] {
  const result: Segment[] = [];
  for (const each of segments) {
    if (each.kind === "literal" && (each.name === "" || each.name === ".")) continue;
    if (each.kind === "any" && result.at(-1)?.kind === "any") continue;
    if (each.kind === "literal" && each.name === "..") result.pop();
    else result.push(each);
  }
  while (result.at(-1)?.kind === "any") result.pop();
  return result;
}

function splitSegments(word: string): readonly string[] {
  return word.match(/(?:\\.|[^/\\])+/gs) ?? [];
}

/** Expands `a{b,c}d` to `abd` and `acd`; braces without a comma are literal, as in a shell. */
function expandBraces(pattern: string): readonly string[] {
  const group = firstGroup(pattern);
  if (group === undefined) return [pattern];
  const words = group.words.flatMap((word) => expandBraces(`${group.before}${word}${group.after}`));
  if (words.length > MAX_WORDS)
    throw new TooManyWords(`Cannot use '${pattern}': it stands for more than ${MAX_WORDS} patterns`);
  return words;
}

type Group = { readonly before: string; readonly words: readonly string[]; readonly after: string };

function firstGroup(pattern: string): Group | undefined {
  for (let at = 0; at < pattern.length; at += 1) {
    if (pattern[at] === "\\") at += 1;
    else if (pattern[at] === "{") {
      const group = groupAt(pattern, at);
      if (group !== undefined) return group;
    }
  }
  return undefined;
}

function groupAt(pattern: string, start: number): Group | undefined {
  const words: string[] = [];
  let depth = 0;
  let from = start + 1;
  for (let at = start + 1; at < pattern.length; at += 1) {
    const letter = pattern[at];
    if (letter === "\\") at += 1;
    else if (letter === "{") depth += 1;
    else if (letter === "," && depth === 0) {
      words.push(pattern.slice(from, at));
      from = at + 1;
    } else if (letter === "}" && depth > 0) depth -= 1;
    else if (letter === "}") {
      if (words.length === 0) return undefined;
      words.push(pattern.slice(from, at));
      return { before: pattern.slice(0, start), words, after: pattern.slice(at + 1) };
    }
  }
  return undefined;
}
