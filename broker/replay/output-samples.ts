/**
 * Small, redacted samples of command outputs, for the text diff of a replay. Copied after the reply is sent and committed with
 * the trace index's watermark, so no command waits for a sample. Some samples may be missing.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Database, RootDatabase } from "lmdb";
import type { Variables } from "../model/environment.ts";
import type { BoundedOutput } from "../worlds/output.ts";
import type { Changes, Follower } from "../spans/follower.ts";
import { type KnownSecrets, redact } from "../secrets/redact.ts";

/** Null for a stream that is not text. */
export type OutputSample = { readonly stdout: string | null; readonly stderr: string | null };

/** Bounds: characters of all samples, characters waiting in memory to be written, number of samples, and their age. */
export type SampleBounds = {
  readonly all: number;
  readonly waiting: number;
  readonly count: number;
  readonly ageMs: number;
};

const MI = 1024 * 1024;
export const SAMPLE_BOUNDS: SampleBounds = {
  all: 64 * MI,
  waiting: 4 * MI,
  count: 20_000,
  ageMs: 7 * 86_400_000,
};

type Size = { readonly size: number; readonly at: number };
type Outputs = { readonly stdout: BoundedOutput; readonly stderr: BoundedOutput };

export class OutputSamples implements Follower {
  /** In order of arrival. */
  readonly #sizes = new Map<string, Size>();
  readonly #waiting = new Map<string, OutputSample>();
  readonly #dropped = new Set<string>();
  readonly #isWanted: () => boolean;
  readonly #bounds: SampleBounds;
  #samples: Database<OutputSample, string> | undefined;
  #stored: Database<Size, string> | undefined;
  #total = 0;
  #waitingTotal = 0;

  /** `isWanted` is asked each time; once samples are switched off, existing samples are dropped. */
  constructor(isWanted: () => boolean, bounds: SampleBounds = SAMPLE_BOUNDS) {
    this.#isWanted = isWanted;
    this.#bounds = bounds;
  }

  readonly open = (database: RootDatabase): void => {
    this.#samples = database.openDB({ name: "output-samples" });
    this.#stored = database.openDB({ name: "output-sample-sizes" });
    const rows = [...this.#stored.getRange({})].sort((one, other) => one.value.at - other.value.at);
    for (const { key, value } of rows) this.#count(key, value);
  };

  /** Trace lines contain no outputs. */
  readonly note = (): void => {};

  /** Samples cannot be rebuilt from the trace. */
  readonly needs = (): number => Number.POSITIVE_INFINITY;

  /**
   * Keeps a sample of both outputs after the reply is sent. Empty outputs are known by their hash. `env`: the request's
   * variables, not recorded in any span; `known`: secrets of the command's environment.
   */
  keepLater(span: string, { stdout, stderr }: Outputs, env: Variables = {}, known?: KnownSecrets): void {
    if (stdout.total + stderr.total === 0 || !this.#isWanted()) return;
    if (this.#waitingTotal > this.#bounds.waiting) return;
    setImmediate(() => {
      this.#keep(span, { stdout: sampleOf(stdout, env, known), stderr: sampleOf(stderr, env, known) });
    });
  }

  /** Finds the sample of an ended command, if any. */
  async find(span: string): Promise<OutputSample | undefined> {
    await nextTurn();
    if (!this.#sizes.has(span)) return undefined;
    return this.#waiting.get(span) ?? this.#samples?.get(span);
  }

  readonly changes = (): Changes => {
    this.#dropOld(Date.now());
    const waiting = [...this.#waiting].map(
      ([span, sample]) => [span, sample, this.#sizes.get(span)] as const,
    );
    const dropped = [...this.#dropped];
    return {
      write: () =>
        [
          ...dropped.flatMap((span) => [this.#samples?.remove(span), this.#stored?.remove(span)]),
          ...waiting.flatMap(([span, sample, size]) => [
            this.#samples?.put(span, sample),
            size === undefined ? undefined : this.#stored?.put(span, size),
          ]),
        ].map(async (write) => await write),
      committed: () => {
        for (const span of dropped) this.#dropped.delete(span);
        for (const [span, sample] of waiting) if (this.#waiting.get(span) === sample) this.#stopWaiting(span);
      },
    };
  };

  #keep(span: string, sample: OutputSample): void {
    this.#waiting.set(span, sample);
    const size = lengthOf(sample);
    this.#waitingTotal += size;
    this.#count(span, { size, at: Date.now() });
    this.#dropOld(Date.now());
  }

  /** Samples are in order of time, so the first sample that may stay ends the loop. */
  #dropOld(now: number): void {
    const { all, ageMs } = this.#bounds;
    const count = this.#isWanted() ? this.#bounds.count : 0;
    for (const [span, { size, at }] of this.#sizes) {
      if (this.#total <= all && this.#sizes.size <= count && now - at <= ageMs) return;
      this.#sizes.delete(span);
      this.#total -= size;
      this.#stopWaiting(span);
      this.#dropped.add(span);
    }
  }

  #count(span: string, size: Size): void {
    this.#sizes.set(span, size);
    this.#total += size.size;
  }

  #stopWaiting(span: string): void {
    const sample = this.#waiting.get(span);
    if (sample === undefined) return;
    this.#waitingTotal -= lengthOf(sample);
    this.#waiting.delete(span);
  }
}

/** Assumed overhead per sample, in characters. */
const ROW = 128;

function lengthOf({ stdout, stderr }: OutputSample): number {
  return (stdout?.length ?? 0) + (stderr?.length ?? 0) + ROW;
}

/** Bytes kept per stream, half from its beginning and half from its end. */
const SAMPLE_BYTES = 16 * 1024;

/** Shortest redacted value of a variable: shorter values occur in outputs as ordinary words. */
const SHORTEST_VALUE = 6;

/** A line of a private key, or of other base64 data, whose beginning was left out. */
const BASE64_LINE = /^[A-Za-z0-9+/=_-]{40,}\r?\n?$/;

const KEY_END = /-----END [A-Z ]{0,40}PRIVATE KEY[^\n]*/;

/**
 * Returns a stream's beginning and end as redacted text. Null for binary data, or for an output no longer in memory. Around a
 * left-out middle, only whole lines stay: half a secret escapes the redaction.
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
  const given = Object.entries(env).filter(([, value]) => value.length >= SHORTEST_VALUE);
  return redact(bytes.toString("utf8"), "output", new Map([...(known ?? []), ...given])).text;
}

function wholeLines(text: string, part: "head" | "tail"): string {
  if (part === "head") return text.slice(0, text.lastIndexOf("\n") + 1);
  // Complete keys are redacted by now, so an END line belongs to a key whose beginning was left out.
  const end = KEY_END.exec(text);
  if (end !== null) return wholeLines(text.slice(end.index + end[0].length), "tail");
  const begun = text.indexOf("\n");
  // The text has no line break: possibly the tail of a longer line, cut in the middle of a secret.
  if (begun === -1) return "";
  const lines = text.slice(begun + 1).match(/[^\n]*\n|[^\n]+$/g) ?? [];
  const first = lines.findIndex((line) => !BASE64_LINE.test(line));
  return first === -1 ? "" : lines.slice(first).join("");
}
