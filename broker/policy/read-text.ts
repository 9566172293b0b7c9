import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";

/** 256 KiB: a policy that people can review is far smaller. */
export const MAX_POLICY_BYTES = 256 * 1024;

/** The text of a policy's file, or a sentence about why there is none. */
export function readText(path: string): { readonly ok: string } | { readonly why: string } {
  try {
    const bytes = readBounded(path);
    if (bytes.length > MAX_POLICY_BYTES)
      return { why: `A policy has at most ${MAX_POLICY_BYTES} bytes, this file has more` };
    return { ok: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return { why: "It is not UTF-8 text" };
    return { why: `Cannot read '${path}': ${code}` };
  }
}

/** At most one byte more than a policy may have. */
function readBounded(path: string): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile())
      throw Object.assign(new Error("it is no plain file"), { code: "it is no plain file" });
    // No more than it takes: what an edit throws away is collected in the middle of some request.
    let buffer = Buffer.allocUnsafe(Math.min(stat.size, MAX_POLICY_BYTES) + 1);
    let length = 0;
    for (;;) {
      const count = readSync(file, buffer, length, buffer.length - length, null);
      length += count;
      if (count === 0 || length > MAX_POLICY_BYTES) return buffer.subarray(0, length);
      // It has grown meanwhile.
      if (length === buffer.length) buffer = Buffer.concat([buffer], MAX_POLICY_BYTES + 1);
    }
  } finally {
    closeSync(file);
  }
}

/** The identity of a file that is not there. */
export const MISSING = "missing";

/** Device, inode, size and both times: an edit in place, a rename and a copy over each change one of them. */
export function identityOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat === undefined
    ? MISSING
    : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
}
