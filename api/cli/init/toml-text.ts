/**
 * Edits TOML as text: a table is appended, a key is put behind the last key of the top. `toml-eslint-parser` gives positions and
 * values, and reads each edit again. Packages that write TOML themselves change spacing (`[ table ]  # note`) of lines that are
 * not edited.
 */
import { isDeepStrictEqual } from "node:util";
import { type AST, getStaticTOMLValue, ParseError, parseTOML } from "toml-eslint-parser";
import { NotUnderstood } from "./not-understood.ts";

type Table = Readonly<Record<string, unknown>>;

/** Parses a whole text. Throws {@link NotUnderstood} with line and column. */
export function readToml(text: string): Table {
  return getStaticTOMLValue(parse(text));
}

function parse(text: string): AST.TOMLProgram {
  try {
    return parseTOML(text);
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    throw new NotUnderstood(`${error.message} at line ${error.lineNumber}, column ${error.column + 1}`);
  }
}

/** Sets a key of the top that is missing. */
export function withKey(text: string, key: string, value: string): string {
  const eol = eolOf(text);
  const line = keyLine(key, value);
  const top = parse(text).body[0].body;
  const last = top.filter((node) => node.type === "TOMLKeyValue").at(-1);
  const at = last === undefined ? 0 : text.indexOf("\n", last.range[1]) + 1;
  const isOpenEnd = last !== undefined && at === 0;
  const gap = last === undefined && text !== "" ? eol : "";
  const edited = isOpenEnd ? text + eol + line : text.slice(0, at) + line + eol + gap + text.slice(at);
  return verified(edited, { ...readToml(text), [key]: value });
}

/** Removes a line that {@link withKey} wrote; undefined where it no longer stands. */
export function withoutKey(text: string, key: string, value: string): string | undefined {
  const before = readToml(text);
  if (before[key] !== value) return undefined;
  const { [key]: _removed, ...expected } = before;
  const node = parse(text).body[0].body.find(
    (each) => each.type === "TOMLKeyValue" && each.key.keys.length === 1 && nameOf(each.key.keys[0]) === key,
  );
  if (node === undefined) return undefined;
  const end = text.indexOf("\n", node.range[1]);
  const start = text.lastIndexOf("\n", node.range[0]) + 1;
  const edited =
    end < 0 ? text.slice(0, start).replace(/\r?\n$/, "") : text.slice(0, start) + text.slice(end + 1);
  return verified(edited, expected);
}

function nameOf(key: AST.TOMLBare | AST.TOMLQuoted | undefined): string | undefined {
  return key?.type === "TOMLBare" ? key.name : key?.value;
}

/** Appends tables at the end. `expected` is the document's value with them: text that means anything else is refused. */
export function withTables(text: string, tables: string, expected: object): string {
  const eol = eolOf(text);
  const isEnded = text === "" || text.endsWith("\n");
  const gap = text === "" ? "" : isEnded ? eol : eol + eol;
  const body = tables.trimEnd().replaceAll("\n", eol);
  return verified(text + gap + body + (isEnded ? eol : ""), expected);
}

/** Removes tables that {@link withTables} appended; undefined where the text no longer stands as it was written. */
export function withoutTables(text: string, tables: string, expected: object): string | undefined {
  const eol = eolOf(text);
  const body = tables.trimEnd().replaceAll("\n", eol);
  const at = text.indexOf(body);
  if (at < 0) return undefined;
  const before = text.slice(0, at);
  const after = text.slice(at + body.length);
  const edited =
    before === "" && after.trim() === ""
      ? ""
      : after.trim() === ""
        ? before.trimEnd() + after
        : before + after.replace(/^\r?\n(\r?\n)?/, "");
  return verified(edited, expected);
}

function keyLine(key: string, value: string): string {
  return `${key} = ${JSON.stringify(value)}`;
}

function verified(edited: string, expected: object): string {
  let value: Table;
  try {
    value = readToml(edited);
  } catch (error) {
    throw new NotUnderstood(`its layout leaves no place for the change (${(error as Error).message})`);
  }
  if (isDeepStrictEqual(plain(value), plain(expected))) return edited;
  throw new NotUnderstood("its layout leaves no place for the change");
}

/** Dates and numbers as text, and objects without a prototype's difference. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_key, each: unknown) => (typeof each === "bigint" ? `${each}n` : each)),
  );
}

function eolOf(text: string): string {
  return text.includes("\r\n") ? "\r\n" : "\n";
}
