/**
 * Converts paths between bytes and strings. The kernel's names are any bytes except `/` and NUL. Node's strings lose bytes that
 * are not UTF-8, and the file is then not found; so a path here has one letter per byte, and can be joined and compared.
 */
import { readdir } from "node:fs/promises";

/** Converts a Node string to one letter per byte. */
export function bytesOf(path: string): string {
  return Buffer.from(path).toString("latin1");
}

/** Converts to a Buffer for Node's file functions. */
export function rawPath(bytes: string): Buffer {
  return Buffer.from(bytes, "latin1");
}

/** Converts to text for people: invalid UTF-8 becomes U+FFFD. */
export function shownPath(bytes: string): string {
  return rawPath(bytes).toString("utf8");
}

export async function namesBelow(bytes: string): Promise<readonly string[]> {
  return await readdir(rawPath(bytes), { encoding: "latin1" });
}
