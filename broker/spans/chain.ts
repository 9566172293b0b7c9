/**
 * The hash chain of the trace. A line is the span as JSON with `seq` and `prev`, and `hash` as its last field: the SHA-256 of
 * exactly the bytes before that field. So a single line can be verified without knowing the JSON formatting, and changing,
 * removing or swapping a line breaks the next line.
 */
import { hash as digest } from "node:crypto";

const END = /,"seq":(\d{1,16}),"prev":(?:null|"(sha256:[0-9a-f]{64})"),"hash":"(sha256:[0-9a-f]{64})"\}$/;

/** Upper bound on a match of `END`, and the length of the part not covered by the hash. */
const LONGEST_END = 256;
const HASH_FIELD_LENGTH = `,"hash":"sha256:${"0".repeat(64)}"}`.length;

/** The last line of a chain; before the first line, 0 and no hash. */
export type Head = { readonly seq: number; readonly hash: string | null };

export const EMPTY_HEAD: Head = { seq: 0, hash: null };

/** A line's own number, hash, and the previous line's hash (`prev`). */
export type Link = { readonly seq: number; readonly prev: string | null; readonly hash: string };

/** Formats the next line after `head`, without its newline, and returns the new head. */
export function linkLine(
  record: Readonly<Record<string, unknown>>,
  head: Head,
): { readonly line: string; readonly head: Head } {
  const seq = head.seq + 1;
  const link = { seq, prev: head.hash };
  // Copying with two more fields costs as much as formatting, so copy only when a field would occur twice.
  const json = "seq" in record ? JSON.stringify({ ...record, ...link }) : joined(record, link);
  const body = json.slice(0, -1);
  const hash = hashOf(body);
  return { line: `${body},"hash":"${hash}"}`, head: { seq, hash } };
}

/** Joins the JSON of two non-empty objects into one object. */
function joined(record: object, more: object): string {
  return `${JSON.stringify(record).slice(0, -1)},${JSON.stringify(more).slice(1)}`;
}

/** Parses the end of a line, given as bytes, and verifies the hash of its content. */
export function readLink(line: Buffer): Link | { readonly wrong: string } {
  const match = END.exec(line.subarray(-LONGEST_END).toString("latin1"));
  const [, seq, prev = null, hash] = match ?? [];
  if (seq === undefined || hash === undefined) return { wrong: "it is not a span with a hash" };
  if (hashOf(line.subarray(0, -HASH_FIELD_LENGTH)) !== hash)
    return { wrong: "its content does not match its hash: it was edited" };
  return { seq: Number(seq), prev, hash };
}

/** Verifies a line, given as bytes, against the previous head. Returns the new head, or the error as a sentence. */
export function checkLine(line: Buffer, before: Head): { readonly head: Head } | { readonly wrong: string } {
  const link = readLink(line);
  if ("wrong" in link) return link;
  const { seq, prev, hash } = link;
  if (prev !== before.hash || seq !== before.seq + 1) {
    return { wrong: `it does not follow span ${before.seq}: a line before it was removed, added or moved` };
  }
  return { head: { seq, hash } };
}

function hashOf(body: string | Buffer): string {
  return `sha256:${digest("sha256", body, "hex")}`;
}
