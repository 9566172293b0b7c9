/**
 * Reads only what changed. Parsing a policy of 1,000 rules takes longer than any command may wait, and an edit changes few
 * of them. The parser itself says where the items of a list begin and what the changed ones are: no line is understood
 * here. Wherever a change could mean something beyond its own items, the answer is null and the whole is read.
 *
 * Why items can be read alone: an item ends before the next line that begins with `-` in the list's column, or less
 * indented, whatever it holds; and nothing in it changes what other lines mean, but for anchors, directives and the
 * marks between documents.
 */
import type { ListBlock, ListParts, Part } from "./yaml-parts.ts";

/** A value and where its parts stand. */
export interface Edit {
  readonly value: unknown;
  readonly root: Part;
}

/** Reads lines that are items of one list, as a list; null when they are not. */
export type ReadItems = (text: string) => Edit | null;

/** @param before a file that is divisible. */
export function editOf(before: Edit & { readonly text: string }, text: string, read: ReadItems): Edit | null {
  let edit: Edit | null = { value: before.value, root: before.root };
  // From the last one: what stands before it is where it was.
  for (const change of changesOf(before.text, text).toReversed()) {
    const now = before.text.slice(0, change.from) + text.slice(change.at);
    edit = editPart(edit, 0, { ...change, text: now, read });
    if (edit === null) return null;
  }
  return edit;
}

interface Change {
  /** Where the old text begins to differ. */
  readonly from: number;
  /** Where it is equal again. */
  readonly to: number;
  /** Where the new text begins to differ. */
  readonly at: number;
  /** By how many characters the new one is longer between. */
  readonly longer: number;
}

interface NewText extends Change {
  readonly text: string;
  readonly read: ReadItems;
}

/** More places than these are one change, from the first to the last. */
const MOST_PLACES = 32;

/** In their order. One in several lines, of which none came or went, is a change in each line that differs. */
function changesOf(before: string, text: string): readonly Change[] {
  if (before === text) return [];
  const whole = changeOf(before, text, 0, 0);
  const start = whole.from === 0 ? 0 : before.lastIndexOf("\n", whole.from - 1) + 1;
  const old = before.slice(start, whole.to).split("\n");
  const now = text.slice(start, whole.to + whole.longer).split("\n");
  if (old.length !== now.length) return [whole];
  const changes: Change[] = [];
  let [from, at] = [start, start];
  for (const [index, line] of old.entries()) {
    const other = now[index] ?? "";
    if (line !== other && changes.push(changeOf(line, other, from, at)) > MOST_PLACES) return [whole];
    from += line.length + 1;
    at += other.length + 1;
  }
  return changes;
}

/** Of two pieces that begin there in the old text and in the new one. */
function changeOf(before: string, text: string, from: number, at: number): Change {
  const shorter = Math.min(before.length, text.length);
  const first = sameLength(
    shorter,
    (place, length) => before.slice(place, place + length) === text.slice(place, place + length),
  );
  const last = sameLength(shorter - first, (place, length) => {
    const [end, other] = [before.length - place, text.length - place];
    return before.slice(end - length, end) === text.slice(other - length, other);
  });
  const longer = text.length - before.length;
  return { from: from + first, to: from + before.length - last, at: at + first, longer };
}

/** How many characters are the same, of at most `limit`: whole pieces are compared first, then ever smaller ones. */
function sameLength(limit: number, isSame: (at: number, length: number) => boolean): number {
  let at = 0;
  for (let length = 4096; length >= 1; length = Math.floor(length / 4)) {
    while (at + length <= limit && isSame(at, length)) at += length;
  }
  return at;
}

/** The part with the change in it, down through maps to the first list that holds the change between its items. */
function editPart({ value, root }: Edit, around: number, change: NewText): Edit | null {
  const { inside } = root;
  const at = around + root.at;
  if (inside?.kind === "list") return editList(value, root, inside, at, change);
  if (inside?.kind !== "map" || typeof value !== "object" || value === null) return null;
  const names = [...inside.entries.keys()];
  const index = names.findLastIndex((name) => at + (inside.entries.get(name)?.at ?? 0) <= change.from);
  const name = names[index];
  const part = name === undefined ? undefined : inside.entries.get(name);
  if (name === undefined || part === undefined) return null;
  const own: unknown = Object.entries(value).find(([key]) => key === name)?.[1];
  const edited = editPart({ value: own, root: part }, at, change);
  if (edited === null) return null;
  const entries = new Map(inside.entries);
  entries.set(name, edited.root);
  for (const later of names.slice(index + 1))
    entries.set(later, moved(inside.entries.get(later) ?? part, change.longer));
  return {
    value: { ...value, [name]: edited.value },
    root: { at: root.at, inside: { kind: "map", entries } },
  };
}

function editList(value: unknown, root: Part, parts: ListParts, at: number, change: NewText): Edit | null {
  const { block } = parts;
  if (block === null || !Array.isArray(value)) return null;
  const { from, to, longer, text } = change;
  const first = block.lines.findLastIndex((line) => at + line <= from);
  const bounds = [...block.lines, block.end];
  const next = bounds.findIndex((line, index) => index >= first && at + line >= to);
  if (first < 0 || next < 0) return null;
  const begin = at + (bounds[first] ?? 0);
  const end = at + (bounds[next] ?? 0) + longer;
  const items = readLines(text.slice(begin, end), block.indent, end === text.length, change.read);
  if (items === null || !Array.isArray(items.value) || items.root.inside?.kind !== "list") return null;
  const read = items.root.inside;
  const shift = begin - at;
  const entries = [
    ...parts.entries.slice(0, first),
    ...read.entries.map((part) => moved(part, shift)),
    ...parts.entries.slice(next).map((part) => moved(part, longer)),
  ];
  if (entries.length === 0) return null;
  const values: readonly unknown[] = value;
  const lines = [
    ...block.lines.slice(0, first),
    ...(read.block?.lines ?? []).map((line) => line + shift),
    ...block.lines.slice(next).map((line) => line + longer),
  ];
  const changed: ListBlock = { indent: block.indent, lines, end: block.end + longer };
  return {
    value: [...values.slice(0, first), ...(items.value as readonly unknown[]), ...values.slice(next)],
    root: { at: root.at, inside: { kind: "list", entries, block: changed } },
  };
}

const NOTHING: Edit = {
  value: [],
  root: { at: 0, inside: { kind: "list", entries: [], block: null } },
};

/**
 * What reads otherwise alone than among other lines: tabs and other breaks, what stands between documents, and two things after
 * which the parser may take the items that follow into one: a `-` with nothing behind it, and a comment like `#|`.
 */
const APART = /[\t\r\uFEFF]|^(?:%|---|\.\.\.)|^ *(?:- *)+(?:#.*)?$|^ *#[^ #\n]/m;

function readLines(text: string, indent: number, last: boolean, read: ReadItems): Edit | null {
  if (text === "") return NOTHING;
  const isItem = text.startsWith(`${" ".repeat(indent)}-`);
  if (!isItem || APART.test(text) || !(last || text.endsWith("\n"))) return null;
  const items = read(text);
  const inside = items?.root.inside;
  return inside?.kind === "list" && inside.block?.indent === indent ? items : null;
}

function moved(part: Part, by: number): Part {
  return by === 0 ? part : { ...part, at: part.at + by };
}
