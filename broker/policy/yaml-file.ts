import {
  type CollectionTag,
  type DocumentOptions,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type ParseOptions,
  parseDocument,
  type SchemaOptions,
} from "yaml";
import { type Edit, editOf } from "./yaml-edit.ts";
import { hasAlias, type Part, partsOf } from "./yaml-parts.ts";

export interface YamlPosition {
  /** Both from 1. */
  readonly line: number;
  readonly column: number;
}

export interface YamlFile {
  readonly text: string;
  readonly value: unknown;
  readonly root: Part;
  /** Whether an item of a list may be read anew alone: no part of the file gives another one its meaning. */
  readonly divisible: boolean;
  /** Only what had changed was read. */
  readonly isPart: boolean;
  /** The lists that are written `!only [..]`: their keys and positions, joined by dots. */
  readonly only: ReadonlySet<string>;
  /** Of a key or list item; of the nearest one above it when it is absent. */
  positionOf(path: readonly (string | number)[]): YamlPosition;
}

export interface YamlProblem extends YamlPosition {
  readonly message: string;
}

/**
 * Reads one YAML document. Duplicate keys, unknown tags, several documents and alias bombs are problems.
 *
 * @param before the file as it was read last: of a text that differs from it in some items of a list, only those are read.
 */
export function readYaml(
  text: string,
  before: YamlFile | null = null,
): YamlFile | { readonly problems: readonly YamlProblem[] } {
  const nul = text.indexOf("\0");
  if (nul >= 0)
    return {
      problems: [{ line: lineAt(text, nul), column: 1, message: "A policy cannot hold a NUL character" }],
    };
  try {
    const edit = before?.divisible === true ? editOf(before, text, readItems) : null;
    return edit === null
      ? readDocument(text)
      : fileOf(text, edit, { divisible: true, isPart: true, only: new Set() });
  } catch (error) {
    // Aliases that multiply end in a ReferenceError, thousands of nested brackets in a RangeError.
    const message = error instanceof Error ? error.message : String(error);
    return { problems: [{ line: 1, column: 1, message: `Cannot read it as YAML: ${message}` }] };
  }
}

/** A list that takes the place of the one that `extends` brings. */
export const ONLY: CollectionTag = { tag: "!only", collection: "seq", resolve: (list) => list };

const OPTIONS = {
  uniqueKeys: true,
  prettyErrors: false,
  strict: true,
  keepSourceTokens: true,
  customTags: [ONLY],
} satisfies DocumentOptions & ParseOptions & SchemaOptions;

function readDocument(text: string): YamlFile | { readonly problems: readonly YamlProblem[] } {
  const lines = new LineCounter();
  const document = parseDocument(text, { ...OPTIONS, lineCounter: lines });
  const wrong = [...document.errors, ...document.warnings];
  if (wrong.length > 0) {
    const position = (offset: number): YamlPosition => {
      const { line, col } = lines.linePos(offset);
      return { line: Math.max(line, 1), column: Math.max(col, 1) };
    };
    return { problems: wrong.map((one) => ({ ...position(one.pos[0]), message: one.message })) };
  }
  const value: unknown = document.toJS({ maxAliasCount: 100 });
  const start = document.contents?.range[0] ?? 0;
  const root = { at: start, inside: partsOf(document.contents, text, start, text.length) };
  // A directive (`%YAML 1.1`) changes what words mean; the end of a document may stand before the end of the file.
  const only = new Set(markedLists(document.contents, []));
  const divisible = !hasAlias(document.contents) && !/^(%|---|\.\.\.)/m.test(text) && only.size === 0;
  return fileOf(text, { value, root }, { divisible, isPart: false, only });
}

function markedLists(node: unknown, above: readonly (string | number)[]): readonly string[] {
  if (isSeq(node)) {
    const inside = node.items.flatMap((item, index) => markedLists(item, [...above, index]));
    return node.tag === ONLY.tag ? [above.join("."), ...inside] : inside;
  }
  if (!isMap(node)) return [];
  return node.items.flatMap(({ key, value }) =>
    isScalar(key) ? markedLists(value, [...above, String(key.value)]) : [],
  );
}

/** Items of a list as the whole file would have them; null for any doubt. */
function readItems(text: string): Edit | null {
  const document = parseDocument(text, OPTIONS);
  if (document.errors.length + document.warnings.length > 0 || hasAlias(document.contents)) return null;
  if (markedLists(document.contents, []).length > 0) return null;
  const root = { at: 0, inside: partsOf(document.contents, text, 0, text.length) };
  return { value: document.toJS({ maxAliasCount: 0 }), root };
}

function fileOf(
  text: string,
  { value, root }: Edit,
  how: Pick<YamlFile, "divisible" | "isPart" | "only">,
): YamlFile {
  let starts: readonly number[] | null = null;
  let last = 0;
  const positionOf = (path: readonly (string | number)[]): YamlPosition => {
    starts ??= lineStarts(text);
    const offset = offsetOf(root, path);
    last = lineOf(starts, offset, last);
    return { line: last + 1, column: offset - (starts[last] ?? 0) + 1 };
  };
  return { text, value, root, ...how, positionOf };
}

function offsetOf(root: Part, path: readonly (string | number)[]): number {
  let offset = root.at;
  let { inside } = root;
  for (const name of path) {
    const next = inside?.kind === "list" ? inside.entries[Number(name)] : inside?.entries.get(String(name));
    if (next === undefined) return offset;
    offset += next.at;
    inside = next.inside;
  }
  return offset;
}

function lineStarts(text: string): readonly number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

/** Index of the last line that starts at or before the offset. Most are asked for in their order: the next one after `last`. */
function lineOf(starts: readonly number[], offset: number, last: number): number {
  const holds = (line: number): boolean =>
    (starts[line] ?? Infinity) <= offset && (starts[line + 1] ?? Infinity) > offset;
  if (holds(last)) return last;
  if (holds(last + 1)) return last + 1;
  let low = 0;
  let high = starts.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle;
  }
  return low;
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}
