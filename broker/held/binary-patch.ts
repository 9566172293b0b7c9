/** A change of bytes that are no text, in the form that `git apply` takes (git-diff(1), `--binary`). Pure. */
import { createHash } from "node:crypto";
import { deflateSync } from "node:zlib";

/** The digits of git's base 85 (base85.c in git). */
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/** Bytes of one line: its first letter says how many (A to Z are 1 to 26, a to z are 27 to 52). */
const LINE = 52;

/**
 * The `index` line and both literals: the second one is what `git apply -R` puts back. A side that is not there is empty.
 *
 * @param mode the mode that both sides have, or "" where one is missing or the mode changes.
 */
export function binaryPatch(before: Buffer | null, after: Buffer | null, mode: string): string {
  const index = `index ${blobId(before)}..${blobId(after)}${mode === "" ? "" : ` ${mode}`}\n`;
  return `${index}GIT binary patch\n${literal(after)}${literal(before)}`;
}

/** The object id of a blob; of no blob at all, zeros. */
function blobId(bytes: Buffer | null): string {
  if (bytes === null) return "0".repeat(40);
  return createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
}

function literal(side: Buffer | null): string {
  const bytes = side ?? Buffer.alloc(0);
  const packed = deflateSync(bytes);
  const lines: string[] = [];
  for (let at = 0; at < packed.length; at += LINE) lines.push(lineOf(packed.subarray(at, at + LINE)));
  return `literal ${bytes.length}\n${lines.join("\n")}\n\n`;
}

function lineOf(bytes: Buffer): string {
  const first = bytes.length <= 26 ? 64 + bytes.length : 96 + bytes.length - 26;
  let text = String.fromCharCode(first);
  for (let at = 0; at < bytes.length; at += 4) text += wordOf(bytes, at);
  return text;
}

/** Four bytes, the first one the highest, as five digits; what is missing at the end counts as 0. */
function wordOf(bytes: Buffer, at: number): string {
  let rest = 0;
  for (let byte = at; byte < at + 4; byte += 1) rest = rest * 256 + (bytes[byte] ?? 0);
  const digits: string[] = [];
  for (let digit = 0; digit < 5; digit += 1) {
    digits.unshift(DIGITS[rest % 85] ?? "");
    rest = Math.floor(rest / 85);
  }
  return digits.join("");
}
