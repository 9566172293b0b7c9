/** Decides which trace files to drop, and describes the dropped lines for the record. */
import { basename } from "node:path";
import type { DroppedFile, Span, TraceDropped } from "../../schemas/generated/types.ts";
import { readLink } from "./chain.ts";
import { firstLineOf, lastLineOf } from "./file-ends.ts";
import type { TracePart } from "./trace-parts.ts";

export type TraceLimits = {
  /** Rotation threshold: bytes of the live file. */
  readonly fileBytes: number;
  /** Maximum age of a file's last line, in milliseconds; infinite keeps all files. */
  readonly maxAgeMs: number;
  /** Maximum bytes of all files; the oldest files are dropped first. */
  readonly maxBytes: number;
};

const MIB = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1000;

/** Converts the settings, filling in defaults. */
export function traceLimits(settings: {
  readonly file_mib?: number;
  readonly max_age_days?: number;
  readonly max_mib?: number;
}): TraceLimits {
  return {
    fileBytes: (settings.file_mib ?? 128) * MIB,
    maxAgeMs: (settings.max_age_days ?? Number.POSITIVE_INFINITY) * DAY_MS,
    maxBytes: (settings.max_mib ?? 16_384) * MIB,
  };
}

/** Lines still in use. */
export type InUse = {
  /** The oldest file with a needed line, by its first line's number. */
  readonly file: number;
  /** Lines from this time on are needed, in milliseconds since 1970. */
  readonly since: number;
};

/**
 * Returns the oldest files beyond a limit and not in use; undefined without such files. Throws for a file whose first or last
 * line is not a span.
 */
export function toDrop(
  parts: readonly TracePart[],
  liveBytes: number,
  limits: TraceLimits,
  inUse: InUse,
  now: number,
): TraceDropped | undefined {
  const reasons = new Set<TraceDropped["reason"]>();
  const files: DroppedFile[] = [];
  let left = parts.reduce((sum, { size }) => sum + size, liveBytes);
  for (const part of parts) {
    const isLarge = left > limits.maxBytes;
    if (part.first >= inUse.file) break;
    const { last, at } = lastOf(part);
    const isOld = now - at > limits.maxAgeMs;
    if ((!isLarge && !isOld) || at >= inUse.since) break;
    reasons.add(isOld ? "age" : "size");
    files.push({
      file: basename(part.path),
      first_seq: part.first,
      last_seq: last.seq,
      last_hash: last.hash,
      bytes: part.size,
    });
    left -= part.size;
  }
  const [oldest] = parts;
  const newest = files.at(-1);
  if (oldest === undefined || newest === undefined) return undefined;
  const { seq, prev } = linkOf(oldest.path, firstLineOf(oldest.path));
  return {
    reason: reasons.has("age") ? "age" : "size",
    first_seq: seq,
    last_seq: newest.last_seq,
    lines: newest.last_seq - seq + 1,
    bytes: files.reduce((sum, { bytes }) => sum + bytes, 0),
    prev,
    last_hash: newest.last_hash,
    files,
  };
}

/** Whether a file is the one named by the drop line: the trace may have been replaced since. */
export function isDropped(part: TracePart, dropped: TraceDropped): boolean {
  const file = dropped.files.find(({ first_seq: first }) => first === part.first);
  if (file === undefined) return false;
  const link = readLink(Buffer.from(lastLineOf(part.path) ?? "", "utf8"));
  return "hash" in link && link.hash === file.last_hash;
}

function lastOf(part: TracePart): { readonly last: ReturnType<typeof linkOf>; readonly at: number } {
  const line = lastLineOf(part.path);
  return { last: linkOf(part.path, line), at: Date.parse((JSON.parse(line ?? "") as Span).ts) };
}

function linkOf(path: string, line: string | undefined): { seq: number; prev: string | null; hash: string } {
  const link = readLink(Buffer.from(line ?? "", "utf8"));
  if ("hash" in link) return link;
  throw new Error(`Cannot drop '${path}': ${link.wrong}. 'substrate trace verify' shows what is wrong`);
}
