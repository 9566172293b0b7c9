import type { Variables } from "../model/environment.ts";
import type { BoundedOutput } from "../worlds/output.ts";
import { type KnownSecrets, redact } from "../secrets/redact.ts";

/** Bytes of one stream that are kept, half from its beginning and half from its end. */
const SAMPLE_BYTES = 16 * 1024;

/** Of a variable: shorter ones are words that stand in outputs for other reasons. */
const SHORTEST_VALUE = 6;

/** A line of a private key, or of anything else in base64, whose beginning is in what was left out. */
const BASE64_LINE = /^[A-Za-z0-9+/=_-]{40,}\r?\n?$/;

const KEY_END = /-----END [A-Z ]{0,40}PRIVATE KEY[^\n]*/;

/**
 * What of a stream may be kept: its beginning and its end as text, secrets replaced. Null when it is no text, or nothing of it is
 * there any more. Where the middle is left out, only whole lines stay: half a secret looks like none.
 */
export function sampleOf(output: BoundedOutput, env: Variables = {}, known?: KnownSecrets): string | null {
  const { head, tail } = output.ends(SAMPLE_BYTES / 2);
  if (head.includes(0) || tail.includes(0)) return null;
  const seen = head.length + tail.length;
  if (seen === output.total) return cleaned(Buffer.concat([head, tail]), env, known);
  if (seen === 0) return null;
  const left = `… [the middle is left out of this sample: ${output.total} bytes in all]`;
  return `${wholeLines(cleaned(head, env, known), "head")}${left}\n${wholeLines(cleaned(tail, env, known), "tail")}`;
}

function cleaned(bytes: Buffer, env: Variables, known?: KnownSecrets): string {
  let text = bytes.toString("utf8");
  // One value may be part of another: the shorter one first would leave the rest of the longer.
  for (const [name, value] of Object.entries(env).sort(([, one], [, other]) => other.length - one.length))
    if (value.length >= SHORTEST_VALUE) text = text.replaceAll(value, () => `[redacted:env.${name}]`);
  return redact(text, "output", known).text;
}

function wholeLines(text: string, part: "head" | "tail"): string {
  if (part === "head") return text.slice(0, text.lastIndexOf("\n") + 1);
  // Of a whole key nothing is left by now: what stands before this is one whose beginning is in what was left out.
  const end = KEY_END.exec(text);
  if (end !== null) return wholeLines(text.slice(end.index + end[0].length), "tail");
  const begun = text.indexOf("\n");
  // All of it is the end of one line, and may begin in the middle of a secret.
  if (begun === -1) return "";
  const lines = text.slice(begun + 1).match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const first = lines.findIndex((line) => !BASE64_LINE.test(line));
  return first === -1 ? "" : lines.slice(first).join("");
}
