/**
 * Formats a change as a git patch. Pure and bounded in time: two completely different texts are shown as removed and added
 * wholes.
 */
import { isUtf8 } from "node:buffer";
import { structuredPatch } from "diff";
import { patchPath } from "./change-path.ts";
import { createHash } from "node:crypto";
import { deflateSync } from "node:zlib";

/** A side of a change. `bytes` null: too large to show. */
export type PatchSide =
  | { readonly kind: "file"; readonly mode: number; readonly bytes: Uint8Array | null }
  | { readonly kind: "link"; readonly target: Uint8Array };

/** `added` and `removed` count lines, null if not counted; `left` says why the text is incomplete. */
export type FilePatch = {
  readonly text: string;
  readonly binary: boolean | null;
  readonly added: number | null;
  readonly removed: number | null;
  readonly left: "large" | null;
};

type Hunk = {
  readonly oldStart: number;
  readonly oldLines: number;
  readonly newStart: number;
  readonly newLines: number;
  readonly lines: readonly string[];
};

/** Bound on comparing two texts, in milliseconds: the comparison blocks the event loop. */
const COMPARE_MS = 40;

/** Git searches this many bytes for a NUL (xdiff-interface.c). */
const LOOKED_AT = 8000;

/** Builds the patch from `before` to `after`; undefined stands for a missing side. */
export function filePatch(
  path: string,
  before: PatchSide | undefined,
  after: PatchSide | undefined,
): FilePatch {
  if (before === undefined || after === undefined || before.kind === after.kind)
    return onePatch(path, before, after);
  // Git never turns a link into a file: the link is removed, then the file added.
  return joined(onePatch(path, before, undefined), onePatch(path, undefined, after));
}

function onePatch(path: string, before: PatchSide | undefined, after: PatchSide | undefined): FilePatch {
  if (before?.kind === "link" && after?.kind === "link")
    return joined(onePatch(path, before, undefined), onePatch(path, undefined, after));
  const head = headOf(path, before, after);
  const [old, now] = [bytesOf(before), bytesOf(after)];
  const names = [sideName("a/", path, before), sideName("b/", path, after)] as const;
  if (old === null || now === null) {
    // git apply stops at this line; a head alone would silently create an empty file.
    const text = `${head}Binary files ${names[0]} and ${names[1]} differ\n`;
    return { text, binary: null, added: null, removed: null, left: "large" };
  }
  if (old.equals(now)) return { text: head, binary: isBinary(old), added: 0, removed: 0, left: null };
  if (isBinary(old) || isBinary(now)) {
    const mode =
      before === undefined || after === undefined || modeOf(before) !== modeOf(after) ? "" : modeOf(after);
    const sides = [before === undefined ? null : old, after === undefined ? null : now] as const;
    return {
      text: `${head}${binaryPatch(...sides, mode)}`,
      binary: true,
      added: null,
      removed: null,
      left: null,
    };
  }
  return { ...hunksText(head, names, old.toString("utf8"), now.toString("utf8")), binary: false, left: null };
}

function joined(first: FilePatch, second: FilePatch): FilePatch {
  const sum = (one: number | null, other: number | null): number | null =>
    one === null || other === null ? null : one + other;
  return {
    text: first.text + second.text,
    binary: first.binary === true || second.binary === true ? true : (first.binary ?? second.binary),
    added: sum(first.added, second.added),
    removed: sum(first.removed, second.removed),
    left: first.left ?? second.left,
  };
}

function headOf(path: string, before: PatchSide | undefined, after: PatchSide | undefined): string {
  const head = `diff --git ${patchPath("a/", path)} ${patchPath("b/", path)}\n`;
  if (before === undefined) return `${head}new file mode ${modeOf(after)}\n`;
  if (after === undefined) return `${head}deleted file mode ${modeOf(before)}\n`;
  const [old, now] = [modeOf(before), modeOf(after)];
  return old === now ? head : `${head}old mode ${old}\nnew mode ${now}\n`;
}

/** Formats the mode with all permission bits, while git has only two modes: a setuid bit must be seen. */
function modeOf(side: PatchSide | undefined): string {
  return side?.kind === "file" ? (0o100000 | (side.mode & 0o7777)).toString(8) : "120000";
}

/** Formats a side's name. A name with a space ends with a tab, as in git, because text after a space could be a date. */
function sideName(prefix: string, path: string, side: PatchSide | undefined): string {
  return side === undefined ? "/dev/null" : patchPath(prefix, path);
}

function hunksText(
  head: string,
  [from, to]: readonly [string, string],
  old: string,
  now: string,
): { readonly text: string; readonly added: number; readonly removed: number } {
  const hunks = hunksOf(old, now);
  const count = (mark: string): number =>
    hunks.reduce((sum, { lines }) => sum + lines.filter((line) => line.startsWith(mark)).length, 0);
  const body = hunks.map((hunk) => `${rangesOf(hunk)}\n${hunk.lines.join("\n")}\n`).join("");
  return {
    text: `${head}--- ${tabbed(from)}\n+++ ${tabbed(to)}\n${body}`,
    added: count("+"),
    removed: count("-"),
  };
}

function tabbed(name: string): string {
  return name.includes(" ") ? `${name}\t` : name;
}

function hunksOf(old: string, now: string): readonly Hunk[] {
  if (old === "" || now === "") return [wholeHunk(old, now)];
  const patch = structuredPatch("", "", old, now, "", "", { context: 3, timeout: COMPARE_MS });
  return patch?.hunks ?? [wholeHunk(old, now)];
}

function wholeHunk(old: string, now: string): Hunk {
  const [before, after] = [linesOf(old), linesOf(now)];
  return {
    oldStart: 1,
    oldLines: before.length,
    newStart: 1,
    newLines: after.length,
    lines: [...marked("-", before), ...marked("+", after)],
  };
}

function marked(mark: string, lines: readonly string[]): readonly string[] {
  return lines.flatMap((line) =>
    line.endsWith("\n") ? [mark + line.slice(0, -1)] : [mark + line, "\\ No newline at end of file"],
  );
}

/** diff(1): an empty range names the line before it. */
function rangesOf({ oldStart, oldLines, newStart, newLines }: Hunk): string {
  const range = (start: number, lines: number): string => `${lines === 0 ? start - 1 : start},${lines}`;
  return `@@ -${range(oldStart, oldLines)} +${range(newStart, newLines)} @@`;
}

function linesOf(text: string): readonly string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function bytesOf(side: PatchSide | undefined): Buffer | null {
  if (side === undefined) return Buffer.alloc(0);
  const bytes = side.kind === "link" ? side.target : side.bytes;
  return bytes === null ? null : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Text that is not UTF-8 cannot appear unchanged in a JSON string, so it counts as binary. */
function isBinary(bytes: Buffer): boolean {
  return bytes.subarray(0, LOOKED_AT).includes(0) || !isUtf8(bytes);
}

/** A change of binary content, in the format of `git apply` (git-diff(1), `--binary`). Pure. */

/** The digits of git's base 85 (base85.c in git). */
const DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";

/** Bytes per line; the line's first letter encodes its length (A to Z are 1 to 26, a to z are 27 to 52). */
const LINE = 52;

/**
 * Builds the `index` line and both literals; `git apply -R` uses the second. A missing side is empty.
 *
 * @param mode the mode of both sides, or "" for a missing side or a changed mode.
 */
function binaryPatch(before: Buffer | null, after: Buffer | null, mode: string): string {
  const index = `index ${blobId(before)}..${blobId(after)}${mode === "" ? "" : ` ${mode}`}\n`;
  return `${index}GIT binary patch\n${literal(after)}${literal(before)}`;
}

/** Returns the object id of a blob; zeros for a missing blob. */
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

/** Encodes four big-endian bytes as five digits; missing bytes count as 0. */
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
