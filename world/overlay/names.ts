/**
 * Names as the kernel has them: any bytes but `/` and NUL. Node's strings lose those that are not UTF-8, and then the
 * file is not found again; so a path here has one letter for each byte, and can be joined and compared.
 */
import { readdir } from "node:fs/promises";

/** A path from a Node string to one letter for each byte. */
export function bytesOf(path: string): string {
  return Buffer.from(path).toString("latin1");
}

/** What Node's file functions take. */
export function rawPath(bytes: string): Buffer {
  return Buffer.from(bytes, "latin1");
}

/** For people: what is not UTF-8 becomes U+FFFD. */
export function shownPath(bytes: string): string {
  return rawPath(bytes).toString("utf8");
}

export async function namesBelow(bytes: string): Promise<readonly string[]> {
  return await readdir(rawPath(bytes), { encoding: "latin1" });
}
