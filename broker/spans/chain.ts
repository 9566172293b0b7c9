/**
 * The hash chain of the trace. A line is the span as JSON with `seq` and `prev` in it and `hash` as its last
 * field: the SHA-256 of the very bytes before that field. So whoever has a line can check it without knowing
 * how JSON was written, and whoever changes, removes or swaps one breaks the next.
 */
import { createHash } from "node:crypto";

const HASH_FIELD = /^(.*),"hash":"(sha256:[0-9a-f]{64})"\}$/s;

/** The last line of a chain; before the first one, 0 and no hash. */
export type Head = { readonly seq: number; readonly hash: string | null };

export const EMPTY_HEAD: Head = { seq: 0, hash: null };

/** The next line after `head`, without its newline, and the head it makes. */
export function linkLine(
  record: Readonly<Record<string, unknown>>,
  head: Head,
): { readonly line: string; readonly head: Head } {
  const seq = head.seq + 1;
  const json = JSON.stringify({ ...record, seq, prev: head.hash });
  const body = json.slice(0, -1);
  const hash = hashOf(body);
  return { line: `${body},"hash":"${hash}"}`, head: { seq, hash } };
}

/** Checks a line against the head before it: the new head, or what is wrong in words. */
export function checkLine(line: string, head: Head): { readonly head: Head } | { readonly wrong: string } {
  const match = HASH_FIELD.exec(line);
  const body = match?.[1];
  const hash = match?.[2];
  if (body === undefined || hash === undefined) return { wrong: "it is no span with a hash" };
  if (hashOf(body) !== hash) return { wrong: "its content does not have the hash it states: it was edited" };
  const { seq, prev } = JSON.parse(line) as { seq?: unknown; prev?: unknown };
  if (prev !== head.hash || seq !== head.seq + 1) {
    return { wrong: `it does not follow span ${head.seq}: a line before it was removed, added or moved` };
  }
  return { head: { seq: head.seq + 1, hash } };
}

function hashOf(body: string): string {
  return `sha256:${createHash("sha256").update(body).digest("hex")}`;
}
