/** Where the parts of a YAML file stand: what positions are told from, and what tells which text a change touches. */
import { isAlias, isMap, isScalar, isSeq, type Node } from "yaml";

/** A key with its value, or an item of a list. */
export interface Part {
  /** Offset of the key or item, counted from that of the part around it: one that moves takes its own along. */
  readonly at: number;
  readonly inside: MapParts | ListParts | null;
}

export interface MapParts {
  readonly kind: "map";
  readonly entries: ReadonlyMap<string, Part>;
}

export interface ListParts {
  readonly kind: "list";
  readonly entries: readonly Part[];
  /** How it stands as lines of its own; null for `[a, b]` and for `- - a`. */
  readonly block: ListBlock | null;
}

/** Offsets are counted from the part that holds the list, and are starts of lines. */
export interface ListBlock {
  /** Blanks before each `-`. */
  readonly indent: number;
  /** The line of each item's `-`. */
  readonly lines: readonly number[];
  /** The line on which something else begins, or the end of the file. */
  readonly end: number;
}

/** The parts of a node that begins at `at`. `end` is where whatever comes after it begins. */
export function partsOf(node: unknown, text: string, at: number, end: number): Part["inside"] {
  if (isMap(node)) return mapParts(node.items, text, at, end);
  if (!isSeq(node)) return null;
  const entries = node.items.map((item) => {
    const own = startOf(item) ?? at;
    return { at: own - at, inside: partsOf(item, text, own, own) };
  });
  return { kind: "list", entries, block: blockOf(node, text, at, end) };
}

/** Does any part of the document stand for another one? */
export function hasAlias(node: unknown): boolean {
  if (isMap(node)) return node.items.some(({ key, value }) => hasAlias(key) || hasAlias(value));
  return isSeq(node) ? node.items.some(hasAlias) : isAlias(node);
}

function mapParts(
  items: readonly { readonly key: unknown; readonly value: unknown }[],
  text: string,
  at: number,
  end: number,
): MapParts {
  const entries = new Map<string, Part>();
  for (const [index, { key, value }] of items.entries()) {
    if (!isScalar(key)) continue;
    const own = startOf(key) ?? at;
    const next = startOf(items[index + 1]?.key);
    const after = next === undefined ? end : lineStart(text, next);
    entries.set(String(key.value), { at: own - at, inside: partsOf(value, text, own, after) });
  }
  return { kind: "map", entries };
}

function blockOf(node: Node, text: string, at: number, end: number): ListBlock | null {
  const token = node.srcToken;
  if (token?.type !== "block-seq") return null;
  const marks = token.items.flatMap(
    ({ start }) => start.find(({ type }) => type === "seq-item-ind")?.offset ?? [],
  );
  const lines = marks.map((mark) => lineStart(text, mark));
  const alone = marks.every((mark, index) => text.slice(lines[index], mark) === " ".repeat(token.indent));
  if (!alone || marks.length !== token.items.length) return null;
  return { indent: token.indent, lines: lines.map((line) => line - at), end: end - at };
}

function lineStart(text: string, offset: number): number {
  return offset === 0 ? 0 : text.lastIndexOf("\n", offset - 1) + 1;
}

function startOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0];
}
