/** Adds lines to a list of a YAML file, and takes them out again. Comments and layout stay; each edit is read again. */
import { isDeepStrictEqual } from "node:util";
import { isMap, isScalar, isSeq, type Pair, parseDocument, type Scalar } from "yaml";
import type { Edited } from "./parts.ts";
import { NotUnderstood } from "./not-understood.ts";

/**
 * Adds items (`NAME=VALUE`) that are missing, and replaces one that names the same program at another place. Throws
 * {@link NotUnderstood}, also where a name has another value.
 */
export function withItems(text: string, key: string, items: readonly string[]): Edited {
  const before = readYaml(text);
  const found = listOf(before, key);
  const missing = items.filter((item) => !found.includes(item));
  const old = found.filter((each) => missing.some((item) => nameOf(each) === nameOf(item)));
  const [item] = missing;
  if (item === undefined) return { text, notes: [] };
  const [moved, other] = [
    old.find((each) => programOf(each) !== undefined && programOf(each) === programOf(item)),
    old[0],
  ];
  if (moved !== undefined) {
    const expected = { ...before, [key]: found.map((each) => (each === moved ? item : each)) };
    const range = nodesOf(text, key).find(({ value }) => value === moved)?.range ?? [0, 0];
    const edited = text.slice(0, range[0]) + JSON.stringify(item) + text.slice(range[1]);
    return withItems(verified(edited, expected), key, items);
  }
  if (other !== undefined)
    throw new NotUnderstood(`'${key}' has ${JSON.stringify(other)}: remove that line first`);
  const expected = { ...before, [key]: [...found, ...missing] };
  return { text: verified(placed(text, key, missing), expected), notes: [] };
}

/** Removes items, and with the last one the list. */
export function withoutItems(text: string, key: string, items: readonly string[]): string {
  const { [key]: _list, ...others } = readYaml(text);
  const found = listOf(readYaml(text), key);
  const left = found.filter((each) => !items.includes(each));
  if (left.length === found.length) return text;
  const nodes = nodesOf(text, key).filter(({ value }) => items.includes(String(value)));
  const lines = nodes.map(({ range }) => lineOf(text, range?.[0] ?? 0));
  if (left.length === 0) lines.unshift(lineOf(text, pairOf(text, key)?.start ?? 0));
  const edited = lines
    .toReversed()
    .reduce((rest, [start, end]) => rest.slice(0, start) + rest.slice(end), text);
  // A file without a line break at its end keeps none.
  const ended = text.endsWith("\n") ? edited : edited.replace(/\r?\n$/, "");
  return verified(ended, left.length === 0 ? others : { ...others, [key]: left });
}

type Settings = Readonly<Record<string, unknown>>;

function readYaml(text: string): Settings {
  const document = parseDocument(text);
  const [error] = document.errors;
  if (error !== undefined) throw new NotUnderstood(error.message.split("\n")[0] ?? "it does not load");
  const value: unknown = document.toJS();
  if (value === null) return {};
  if (typeof value === "object" && isMap(document.contents)) return value as Settings;
  throw new NotUnderstood("it is not a map of options");
}

function listOf(settings: Settings, key: string): readonly string[] {
  const list = settings[key] ?? [];
  if (Array.isArray(list) && list.every((each) => typeof each === "string")) return list;
  throw new NotUnderstood(`'${key}' is not a list of texts`);
}

function nameOf(item: string): string {
  return item.slice(0, item.indexOf("="));
}

/** Name and last part of a path; undefined for a value without one. */
function programOf(item: string): string | undefined {
  return item.includes("/") ? nameOf(item) + item.slice(item.lastIndexOf("/")) : undefined;
}

function placed(text: string, key: string, items: readonly string[]): string {
  const eol = text.includes("\r\n") ? "\r\n" : "\n";
  const last = nodesOf(text, key).at(-1);
  const isEnded = text === "" || text.endsWith("\n");
  if (last === undefined) {
    if (pairOf(text, key) !== undefined) throw new NotUnderstood(`'${key}' is empty: remove that line`);
    const lines = [`${key}:`, ...items.map((item) => `  - ${JSON.stringify(item)}`)];
    return `${text}${isEnded ? "" : eol}${lines.join(eol)}${isEnded ? eol : ""}`;
  }
  const [start, end] = lineOf(text, last.range?.[0] ?? 0);
  const indent = /^[ \t]*- */.exec(text.slice(start))?.[0];
  if (indent === undefined) throw new NotUnderstood(`'${key}' is a list on one line: give each item a line`);
  const lines = items.map((item) => `${indent}${JSON.stringify(item)}`);
  if (end === text.length && !isEnded) return [text, ...lines].join(eol);
  return text.slice(0, end) + lines.map((line) => line + eol).join("") + text.slice(end);
}

function pairOf(text: string, key: string): { readonly pair: Pair; readonly start: number } | undefined {
  const { contents } = parseDocument(text);
  const pair = isMap(contents)
    ? contents.items.find((each) => isScalar(each.key) && each.key.value === key)
    : undefined;
  return pair === undefined ? undefined : { pair, start: (pair.key as Scalar).range?.[0] ?? 0 };
}

function nodesOf(text: string, key: string): readonly Scalar[] {
  const value = pairOf(text, key)?.pair.value;
  return isSeq(value) ? value.items.filter((each) => isScalar(each)) : [];
}

/** Where the line of a position begins, and where the next one does. */
function lineOf(text: string, at: number): readonly [number, number] {
  const end = text.indexOf("\n", at);
  return [text.lastIndexOf("\n", at - 1) + 1, end < 0 ? text.length : end + 1];
}

function verified(edited: string, expected: object): string {
  if (isDeepStrictEqual({ ...readYaml(edited) }, expected)) return edited;
  throw new NotUnderstood("its layout leaves no place for the change");
}
