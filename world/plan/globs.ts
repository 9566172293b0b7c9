/**
 * Patterns of deny lists as lists of path segments. Pure.
 *
 * `*`, `?` and `[…]` stay inside one segment and match a leading dot; `**` as a whole segment is any number of
 * folders, none included; `{a,b}` is each of its words; a backslash takes the meaning of what follows it. Whoever
 * matches a pattern matches everything below, so a last `/**` says nothing.
 */
export type Segment =
  | { readonly kind: "literal"; readonly name: string }
  | { readonly kind: "glob"; readonly pattern: string }
  | { readonly kind: "any" }
  /** Any number of folders of a working tree: neither git folders nor installed packages. In seals alone. */
  | { readonly kind: "tree" };

/** Thrown for a pattern that would stand for more names than any list spells out. */
export class TooManyWords extends Error {
  override readonly name = "TooManyWords";
}

const MAX_WORDS = 256;

/** Each list of segments that an absolute pattern stands for. Throws {@link TooManyWords}. */
export function parsePattern(pattern: string): readonly (readonly Segment[])[] {
  return expandBraces(pattern).map((word) => normal(splitSegments(word).map(segment)));
}

/** Why a pattern of a deny list cannot be used, or undefined. What is not understood must not be taken for a name. */
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

/** A path as a pattern that matches nothing else. */
export function literalPattern(path: string): string {
  return path.replace(/[\\*?[\]{}]/g, "\\$&");
}

export function isLiteral(segments: readonly Segment[]): boolean {
  return segments.every(({ kind }) => kind === "literal");
}

/** The folder (or name) that the leading literal segments spell. */
export function literalPrefix(segments: readonly Segment[]): string {
  const end = segments.findIndex(({ kind }) => kind !== "literal");
  return pathOf(end < 0 ? segments : segments.slice(0, end));
}

/** Literal segments as a path. */
export function pathOf(segments: readonly Segment[]): string {
  return `/${segments.map((each) => (each.kind === "literal" ? each.name : "")).join("/")}`;
}

export function segmentsOf(path: string): readonly Segment[] {
  return path
    .split("/")
    .filter((name) => name !== "")
    .map((name) => ({ kind: "literal", name }));
}

/** The same pattern below another folder than the one that its literal prefix names. */
export function movedTo(folder: string, segments: readonly Segment[]): readonly Segment[] {
  const end = segments.findIndex(({ kind }) => kind !== "literal");
  return normal([...segmentsOf(folder), ...(end < 0 ? [] : segments.slice(end))]);
}

function segment(text: string): Segment {
  if (/^\*{2,}$/.test(text)) return { kind: "any" };
  if (/(^|[^\\])(\\\\)*[*?[]/.test(text)) return { kind: "glob", pattern: text };
  return { kind: "literal", name: text.replace(/\\(.)/gs, "$1") };
}

/** Without `.`, `..`, empty segments, repeated `**`, and a `**` at the end. */
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

/** `a{b,c}d` is `abd` and `acd`; braces without a comma are themselves, as in a shell. */
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
