/**
 * The hash chain of the trace. A line is the span as JSON with `seq` and `prev` in it and `hash` as its last
 * field: the SHA-256 of the very bytes before that field. So whoever has a line can check it without knowing
 * how JSON was written, and whoever changes, removes or swaps one breaks the next.
 */
import { createHash } from "node:crypto";

const END = /,"seq":(\d{1,16}),"prev":(?:null|"(sha256:[0-9a-f]{64})"),"hash":"(sha256:[0-9a-f]{64})"\}$/;

/** What `END` can match at most, and what of it the hash is not over. */
const LONGEST_END = 256;
const HASH_FIELD_LENGTH = `,"hash":"sha256:${"0".repeat(64)}"}`.length;

/** The last line of a chain; before the first one, 0 and no hash. */
export type Head = { readonly seq: number; readonly hash: string | null };

export const EMPTY_HEAD: Head = { seq: 0, hash: null };

/** A line as it says itself where it stands; `prev` is the hash of the one before. */
export type Link = { readonly seq: number; readonly prev: string | null; readonly hash: string };

/** The next line after `head`, without its newline, and the head it makes. */
export function linkLine(
  record: Readonly<Record<string, unknown>>,
  head: Head,
): { readonly line: string; readonly head: Head } {
  const seq = head.seq + 1;
  const link = { seq, prev: head.hash };
  // A copy with two fields more costs as much as the text, so it is made only where a field would come twice.
  const json = "seq" in record ? JSON.stringify({ ...record, ...link }) : joined(record, link);
  const body = json.slice(0, -1);
  const hash = hashOf(body);
  return { line: `${body},"hash":"${hash}"}`, head: { seq, hash } };
}

/** The JSON of both as one object; neither is empty. */
function joined(record: object, more: object): string {
  return `${JSON.stringify(record).slice(0, -1)},${JSON.stringify(more).slice(1)}`;
}

/** Reads the end of a line, given as its bytes, and checks that its content is what it states. */
export function readLink(line: Buffer): Link | { readonly wrong: string } {
  const match = END.exec(line.subarray(-LONGEST_END).toString("latin1"));
  const [, seq, prev = null, hash] = match ?? [];
  if (seq === undefined || hash === undefined) return { wrong: "it is no span with a hash" };
  if (hashOf(line.subarray(0, -HASH_FIELD_LENGTH)) !== hash)
    return { wrong: "its content does not have the hash it states: it was edited" };
  return { seq: Number(seq), prev, hash };
}

/** Checks a line, given as its bytes, against the head before it: the new head, or what is wrong in words. */
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
  return `sha256:${createHash("sha256").update(body).digest("hex")}`;
}
