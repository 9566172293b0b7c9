/**
 * Edits JSON and JSONC as text: comments, order, spacing, line ends, trailing commas and a missing final newline stay.
 * `jsonc-parser` gives the positions; its own `modify` moves a comment at the end of a line to the next property.
 */
import {
  createScanner,
  findNodeAtLocation,
  getNodeValue,
  type Node,
  type ParseError,
  parseTree,
  printParseErrorCode,
} from "jsonc-parser";
import { NotUnderstood, placeAt } from "./not-understood.ts";

export type JsonPath = readonly (string | number)[];

const COMMA = ",".charCodeAt(0);

/** Parses a whole text. Throws {@link NotUnderstood} with line and column; a blank text is an empty object. */
export function readJson(text: string): Node {
  const errors: ParseError[] = [];
  const tree = parseTree(text, errors, { allowTrailingComma: true });
  const [error] = errors;
  if (error !== undefined)
    throw new NotUnderstood(`${printParseErrorCode(error.error)} at ${placeAt(text, error.offset)}`);
  if (tree === undefined) throw new NotUnderstood(`no value at ${placeAt(text, 0)}`);
  refuseTwice(text, tree);
  return tree;
}

/** What the parser of an agent takes beyond JSON. None takes a comma behind the last element. */
export type Dialect = { readonly comments: boolean; readonly bom: boolean };

/** Names what in a text an agent's parser does not take; undefined for nothing. The text is one that {@link readJson} reads. */
export function strangeFor(text: string, dialect: Dialect): string | undefined {
  const hasBom = text.startsWith("\uFEFF");
  if (hasBom && !dialect.bom) return "a byte order mark at its beginning";
  const body = hasBom ? text.slice(1) : text;
  const errors: ParseError[] = [];
  parseTree(body, errors, { allowTrailingComma: false, disallowComments: !dialect.comments });
  const [error] = errors;
  if (error === undefined) return undefined;
  const isComment = printParseErrorCode(error.error) === "InvalidCommentToken";
  return `${isComment ? "a comment" : "a comma too many"} at ${placeAt(body, error.offset)}`;
}

/** Parsers differ in which of two equal keys counts: an edit of one might have no effect. */
function refuseTwice(text: string, tree: Node): void {
  const waiting = [tree];
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    waiting.push(...(node.children ?? []));
    if (node.type !== "object") continue;
    const keys = new Set<unknown>();
    for (const property of node.children ?? []) {
      const key = property.children?.[0];
      if (keys.has(key?.value))
        throw new NotUnderstood(
          `the key '${String(key?.value)}' stands twice, again at ${placeAt(text, property.offset)}`,
        );
      keys.add(key?.value);
    }
  }
}

/** The value of a node, of plain objects: `getNodeValue` makes objects without a prototype. */
export function valueOf(node: Node): unknown {
  return JSON.parse(JSON.stringify(getNodeValue(node))) as unknown;
}

export function nodeAt(tree: Node, path: JsonPath): Node | undefined {
  return path.length === 0 ? tree : findNodeAtLocation(tree, [...path]);
}

/** Adds a property behind the others of the object at `path`. */
export function withProperty(text: string, path: JsonPath, key: string, value: unknown): string {
  const object = containerAt(text, path, "object");
  const name = `${JSON.stringify(key)}: `;
  return withChild(text, object, (layout) => name + written(value, layout));
}

/** Adds an element behind the others of the list at `path`. */
export function withElement(text: string, path: JsonPath, value: unknown): string {
  return withChild(text, containerAt(text, path, "array"), (layout) => written(value, layout));
}

/** Replaces the value at `path`. */
export function withValue(text: string, path: JsonPath, value: string | number): string {
  const node = nodeAt(readJson(text), path);
  if (node === undefined) throw new NotUnderstood(`no '${path.join(".")}'`);
  return text.slice(0, node.offset) + JSON.stringify(value) + text.slice(node.offset + node.length);
}

function containerAt(text: string, path: JsonPath, type: "object" | "array"): Node {
  const node = nodeAt(readJson(text), path);
  if (node?.type === type) return node;
  const what = path.length === 0 ? "the whole" : `'${path.join(".")}'`;
  const wanted = type === "array" ? "a list" : "an object";
  throw new NotUnderstood(`${what} is not ${wanted}, at ${placeAt(text, node?.offset ?? 0)}`);
}

type Layout = { readonly eol: string; readonly unit: string; readonly indent: string | undefined };

/** `indent` undefined: on one line. */
function written(value: unknown, { eol, unit, indent }: Layout): string {
  if (indent === undefined) return JSON.stringify(value);
  return JSON.stringify(value, null, unit).split("\n").join(`${eol}${indent}`);
}

function withChild(text: string, parent: Node, write: (layout: Layout) => string): string {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const unit = indentUnit(text);
  const last = parent.children?.at(-1);
  const close = parent.offset + parent.length - 1;
  if (last === undefined) {
    const outer = indentAt(text, parent.offset);
    const comments = text.slice(parent.offset + 1, close).trimEnd();
    const child = write({ eol, unit, indent: outer + unit });
    return `${text.slice(0, parent.offset + 1)}${comments}${eol}${outer}${unit}${child}${eol}${outer}${text.slice(close)}`;
  }
  const { end, comma, lineEnd } = behind(text, last, close);
  const start = comma === undefined ? end : comma + 1;
  const first = parent.children?.[0] ?? last;
  const isInline = !text.slice(parent.offset, first.offset).includes("\n");
  // Behind a line comment on the same line there is no place.
  const at = isInline && text.slice(start, lineEnd).includes("//") ? start : lineEnd;
  const before = comma === undefined ? `${text.slice(0, end)},${text.slice(end, at)}` : text.slice(0, at);
  const tail = (comma === undefined ? "" : ",") + text.slice(at);
  if (isInline) return `${before} ${write({ eol, unit, indent: undefined })}${tail}`;
  const indent = indentAt(text, first.offset);
  return before + eol + indent + write({ eol, unit, indent }) + tail;
}

/** `comma`: its offset. `lineEnd`: behind the comma and the comments that stand on the last child's line. */
type Behind = { readonly end: number; readonly comma: number | undefined; readonly lineEnd: number };

function behind(text: string, child: Node, close: number): Behind {
  const end = child.offset + child.length;
  const comma = commaBehind(text, end, close);
  const scanner = createScanner(text);
  scanner.setPosition(comma === undefined ? end : comma + 1);
  let lineEnd = scanner.getPosition();
  for (let kind: number = scanner.scan(); SAME_LINE.includes(kind); kind = scanner.scan()) {
    if (scanner.getTokenOffset() >= close) break;
    if (kind !== SPACE) lineEnd = scanner.getPosition();
  }
  return { end, comma, lineEnd };
}

/** Numbers of `jsonc-parser`'s SyntaxKind, which exists for the compiler alone: a line comment, a block comment, blanks. */
const SPACE = 15;
const SAME_LINE: readonly number[] = [12, 13, SPACE];

/** The offset of a comma between two offsets, if there is one outside of comments. */
function commaBehind(text: string, from: number, to: number): number | undefined {
  const scanner = createScanner(text, true);
  scanner.setPosition(from);
  scanner.scan();
  const at = scanner.getTokenOffset();
  return at < to && text.charCodeAt(at) === COMMA ? at : undefined;
}

/** Removes the property or element at `path`; exactly what {@link withProperty} and {@link withElement} add. */
export function withoutChild(text: string, path: JsonPath): string {
  const tree = readJson(text);
  const node = nodeAt(tree, path);
  const parent = nodeAt(tree, path.slice(0, -1));
  const child = parent?.type === "object" ? node?.parent : node;
  if (parent?.children === undefined || child === undefined) return text;
  const index = parent.children.indexOf(child);
  const close = parent.offset + parent.length - 1;
  const end = child.offset + child.length;
  const previous = parent.children[index - 1];
  const after = commaBehind(text, end, parent.children[index + 1]?.offset ?? close);
  const start = lineStart(
    text,
    child.offset,
    previous === undefined ? parent.offset + 1 : previous.offset + previous.length,
  );
  if (after !== undefined) {
    const isInline = start === child.offset;
    const isLast = child === parent.children.at(-1);
    if (isInline && isLast && text[start - 1] === " ")
      return text.slice(0, start - 1) + text.slice(after + 1);
    return text.slice(0, start) + text.slice(isInline && text[after + 1] === " " ? after + 2 : after + 1);
  }
  if (previous === undefined) {
    const inner = text.slice(parent.offset + 1, start) + text.slice(end, close);
    return text.slice(0, parent.offset + 1) + (inner.trim() === "" ? "" : inner) + text.slice(close);
  }
  const previousEnd = previous.offset + previous.length;
  const before = commaBehind(text, previousEnd, child.offset) ?? previousEnd;
  const from = start === child.offset && text[start - 1] === " " ? start - 1 : start;
  return text.slice(0, before) + text.slice(before + 1, Math.max(from, before + 1)) + text.slice(end);
}

/** The line's end before a child that begins its line; else the child's own offset. */
function lineStart(text: string, offset: number, least: number): number {
  const gap = text.slice(least, offset);
  const blank = /\r?\n[ \t]*$/.exec(gap);
  return blank === null ? offset : least + blank.index;
}

function indentAt(text: string, offset: number): string {
  const begin = text.lastIndexOf("\n", offset - 1) + 1;
  return /^[ \t]*/.exec(text.slice(begin, offset))?.[0] ?? "";
}

/** The indentation of the first property that begins a line; two spaces without one. */
function indentUnit(text: string): string {
  return /^([ \t]+)"/m.exec(text)?.[1] ?? "  ";
}
