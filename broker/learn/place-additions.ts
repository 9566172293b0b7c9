import {
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { type CompiledPolicy, ONLY } from "../policy/index.ts";
import { fileLists } from "../policy/files/file-lists.ts";
import type { Item, OpenedList } from "./additions.ts";

/** Text to insert into a file at an offset. */
export type Insertion = { readonly at: number; readonly text: string };

/** A new item of a list; `note` is the comment behind the item, empty for none. */
export type NewItem = Item & { readonly note: string };

/**
 * Computes insertions for new items in a policy's file, each item with its comment. Existing text stays, comments and layout
 * included. For an unknown layout the insertions yield another document: the caller must compare. `whole` is the full list to
 * write where the file has no such list. Pure.
 */
export function placeAdditions(
  text: string,
  additions: readonly NewItem[],
  whole: Readonly<Record<OpenedList, readonly string[]>>,
): readonly Insertion[] {
  const root = parseDocument(text, { customTags: [ONLY] }).contents;
  if (!isMap(root)) return [];
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const lists = [...new Set(additions.map(({ list }) => list))];
  return lists.map((list) => {
    const lines = additions.filter((addition) => addition.list === list).map(lineOf);
    return place(
      { text, eol, root },
      list,
      lines,
      whole[list].map((value) => ({ value, note: "" })),
    );
  });
}

/** Returns each list's items for a file without the list: the default that the absent list stands for. */
export function listsWhenAbsent({
  document,
  base,
}: Pick<CompiledPolicy, "document" | "base">): Readonly<Record<OpenedList, readonly string[]>> {
  // With a base policy, written items are appended to the base's lists.
  const { read, write } = base === null ? fileLists(document) : { read: [], write: [] };
  const nothing = { "commands.allowed": [], "approval.auto_approve": [], "net.allowed": [] };
  return { ...nothing, "fs.read": read, "fs.write": write };
}

/** Returns the text with all insertions. */
export function withInsertions(text: string, insertions: readonly Insertion[]): string {
  const sorted = [...insertions].sort((one, other) => other.at - one.at);
  return sorted.reduce((done, { at, text: more }) => done.slice(0, at) + more + done.slice(at), text);
}

type File = { readonly text: string; readonly eol: string; readonly root: YAMLMap };
type Line = { readonly value: string; readonly note: string };

function lineOf({ value, note }: NewItem): Line {
  return { value: JSON.stringify(value), note: note === "" ? "" : ` # ${note}` };
}

function place(file: File, list: OpenedList, lines: readonly Line[], absent: readonly Line[]): Insertion {
  const [section = "", key = ""] = list.split(".");
  const all = [...absent.map(({ value }) => ({ value: JSON.stringify(value), note: "" })), ...lines];
  const parent = pairIn(file.root, section)?.value;
  if (!isMap(parent)) {
    const head = `${section}:${file.eol}  ${key}:${file.eol}`;
    return atEnd(file, `${head}${blockLines(file, "    ", all)}`);
  }
  const value = pairIn(parent, key)?.value;
  if (isSeq(value))
    return value.flow === true
      ? inFlow(file, value, lines, parent.flow === true)
      : afterItems(file, value, lines);
  if (parent.flow === true) return inFlowMap(file, parent, key, all);
  const last = parent.items.at(-1);
  const indent = indentAt(file, startOf(parent.items[0]?.key));
  const end = lineAfter(file, endOf(last));
  return insertion(file, end, `${indent}${key}:${file.eol}${blockLines(file, `${indent}  `, all)}`);
}

function afterItems(file: File, list: YAMLSeq, lines: readonly Line[]): Insertion {
  const indent = indentAt(file, startOf(list.items[0]));
  return insertion(file, lineAfter(file, endOf(list.items.at(-1))), blockLines(file, indent, lines));
}

/** Longest line to extend before breaking into several lines. */
const WIDTH = 120;

/** Extends `[a, b]` in its line if the items have no comments and fit; otherwise adds lines and leaves the old items in place. */
function inFlow(file: File, list: YAMLSeq, lines: readonly Line[], deeper: boolean): Insertion {
  const { text, eol } = file;
  const bracket = (list.range?.[1] ?? 1) - 1;
  const last = list.items.at(-1);
  const short = inLine(file, list, lines, bracket);
  if (short !== undefined) return short;
  const between = text.slice(last === undefined ? bracket : endOf(last), bracket);
  const comma = last === undefined || /,/.test(between.replace(/#.*$/gm, "")) ? "" : ",";
  const indent = `${indentAt(file, list.range?.[0] ?? 0)}${deeper ? "  " : ""}`;
  const items = lines.map(({ value, note }) => `${indent}  ${value},${note}${eol}`).join("");
  const at = bracket - (/[ \t]*$/.exec(between)?.[0].length ?? 0);
  const isOwnLine = /\n[ \t]*$/.test(between);
  if (isOwnLine && comma === "") return { at, text: items };
  // Behind a comment, the comma would become part of the comment, so the comma goes on a line of its own.
  return { at, text: isOwnLine ? `${indent}  ${comma}${eol}${items}` : `${comma}${eol}${items}${indent}` };
}

function inLine(
  { text }: File,
  list: YAMLSeq,
  lines: readonly Line[],
  bracket: number,
): Insertion | undefined {
  const last = list.items.at(-1);
  const [start, end] = [list.range?.[0] ?? 0, last === undefined ? bracket : endOf(last)];
  const line = text.slice(text.lastIndexOf("\n", start - 1) + 1, lineEnd(text, bracket));
  const items = lines.map(({ value }) => value).join(", ");
  const more = last === undefined ? items : `, ${items}`;
  const isOneLine = !text.slice(start, bracket).includes("\n") && text.slice(end, bracket).trim() === "";
  if (!isOneLine || lines.some(({ note }) => note !== "") || line.length + more.length > WIDTH)
    return undefined;
  return { at: end, text: more };
}

function lineEnd(text: string, offset: number): number {
  const end = text.indexOf("\n", offset);
  return end === -1 ? text.length : end;
}

/** Adds the list to `{ a: 1 }` as the last key, over several lines. */
function inFlowMap(file: File, map: YAMLMap, key: string, lines: readonly Line[]): Insertion {
  const { eol } = file;
  const start = map.range?.[0] ?? 0;
  const indent = `${indentAt(file, start)}  `;
  const items = lines.map(({ value, note }) => `${indent}  ${value},${note}${eol}`).join("");
  const last = map.items.at(-1);
  const [at, comma] = last === undefined ? [start + 1, ""] : [endOf(last), ","];
  return { at, text: `${comma} ${key}: [${eol}${items}${indent}]` };
}

function blockLines({ eol }: File, indent: string, lines: readonly Line[]): string {
  return lines.map(({ value, note }) => `${indent}- ${value}${note}${eol}`).join("");
}

function atEnd(file: File, text: string): Insertion {
  return insertion(file, file.text.length, `${file.eol}${text}`);
}

/** Inserts at the start of a line; terminates an open last line first. */
function insertion({ text, eol }: File, at: number, more: string): Insertion {
  const isLineStart = at === 0 || text[at - 1] === "\n";
  return { at, text: isLineStart ? more : `${eol}${more}` };
}

/** Returns the start of the line after an offset; block scalars already end behind their last line. */
function lineAfter({ text }: File, offset: number): number {
  if (offset > 0 && text[offset - 1] === "\n") return offset;
  const end = text.indexOf("\n", offset);
  return end === -1 ? text.length : end + 1;
}

function indentAt({ text }: File, offset: number): string {
  const line = text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset);
  return /^[ \t]*/.exec(line)?.[0] ?? "";
}

function pairIn(map: YAMLMap, name: string): Pair | undefined {
  return map.items.find(({ key }) => isScalar(key) && key.value === name);
}

function startOf(node: unknown): number {
  return (node as Node | null | undefined)?.range?.[0] ?? 0;
}

/** Returns the end of the last scalar below a node: a collection's own end may include following comments. */
function endOf(node: unknown): number {
  if (isSeq(node) && node.flow !== true) return endOf(node.items.at(-1));
  if (isMap(node) && node.flow !== true) return endOf(node.items.at(-1));
  const pair = node as Partial<Pair> | null | undefined;
  if (pair !== null && pair !== undefined && "key" in pair && "value" in pair)
    return pair.value === null ? endOf(pair.key) : endOf(pair.value);
  return (node as Node | null | undefined)?.range?.[1] ?? 0;
}
