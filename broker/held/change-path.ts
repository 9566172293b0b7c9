/**
 * Converts names of changed files between the engine and the wire. The engine stores a path with one character per byte, since a
 * name need not be UTF-8. On the wire, a path that is not UTF-8 or begins with a quotation mark is quoted as by git (`"a\377b"`),
 * so that callers can send it back; other paths stay as they are. Pure.
 */
import { isUtf8 } from "node:buffer";

/** Git's one-letter escapes (quote.c); every other byte is three octal digits. */
const LETTERS = new Map([
  ["\x07", "a"],
  ["\b", "b"],
  ["\t", "t"],
  ["\n", "n"],
  ["\v", "v"],
  ["\f", "f"],
  ["\r", "r"],
  ['"', '"'],
  ["\\", "\\"],
]);
const BYTES = new Map([...LETTERS].map(([byte, letter]) => [letter, byte]));

/** Converts one character per byte to the wire format. */
export function changePath(bytes: string): string {
  return isText(bytes) && !bytes.startsWith('"') ? textOf(bytes) : quotedPath(bytes);
}

/** Converts the wire format to one character per byte; undefined for invalid quoting. */
export function bytesOfChangePath(path: string): string | undefined {
  if (!path.startsWith('"')) return Buffer.from(path, "utf8").toString("latin1");
  const inside = /^"((?:[^"\\]|\\(?:[abtnvfr"\\]|[0-3][0-7]{2}))*)"$/s.exec(path)?.[1];
  if (inside === undefined) return undefined;
  const bytes = Buffer.from(inside, "utf8").toString("latin1");
  return bytes.replace(/\\([0-3][0-7]{2}|.)/gs, (_escape, code: string) =>
    code.length === 3 ? String.fromCharCode(Number.parseInt(code, 8)) : (BYTES.get(code) ?? code),
  );
}

/** Formats a path for a patch as git does: quoted if it contains control characters, quotes or backslashes. */
export function patchPath(prefix: string, bytes: string): string {
  const isPlain = isText(bytes) && !/[\p{Cc}"\\]/u.test(textOf(bytes));
  return isPlain ? prefix + textOf(bytes) : quotedPath(prefix + bytes);
}

function quotedPath(bytes: string): string {
  const text = isText(bytes);
  const inside = text ? textOf(bytes) : bytes;
  return `"${inside.replace(/[\p{Cc}"\\]|[\x80-\xff]/gu, (byte) => escapeOf(byte, text))}"`;
}

/** Escapes a byte; in valid UTF-8, characters beyond ASCII stay as they are. */
function escapeOf(byte: string, text: boolean): string {
  const letter = LETTERS.get(byte);
  if (letter !== undefined) return `\\${letter}`;
  const code = byte.charCodeAt(0);
  return text && code >= 0x80 ? byte : `\\${code.toString(8).padStart(3, "0")}`;
}

function isText(bytes: string): boolean {
  return isUtf8(Buffer.from(bytes, "latin1"));
}

function textOf(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString("utf8");
}

/** The folder of a byte path; "" for one directly in the project. */
export function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf("/")));
}
