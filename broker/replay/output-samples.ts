/**
 * What commands wrote, in small and without secrets, for the text diff of a replay. Copied when the reply is on its way, and
 * committed with the watermark of the trace's index: no command waits for it. What is not kept is missed, never made up.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Database, RootDatabase } from "lmdb";
import type { Variables } from "../model/environment.ts";
import type { BoundedOutput } from "../worlds/output.ts";
import type { Changes, Follower } from "../spans/follower.ts";
import { type KnownSecrets, redact } from "../secrets/redact.ts";

/** Null: nothing of it is kept, because it is no text. */
export type OutputSample = { readonly stdout: string | null; readonly stderr: string | null };

/** Characters of all samples, characters that wait in memory to be written, how many are kept, and for how long. */
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
  /** In the order in which they came. */
  readonly #sizes = new Map<string, Size>();
  readonly #waiting = new Map<string, OutputSample>();
  readonly #dropped = new Set<string>();
  readonly #isWanted: () => boolean;
  readonly #bounds: SampleBounds;
  #samples: Database<OutputSample, string> | undefined;
  #stored: Database<Size, string> | undefined;
  #total = 0;
  #waitingTotal = 0;

  /** `isWanted` is asked each time: when samples are not, those that are kept go. */
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

  /** Lines tell nothing about outputs. */
  readonly note = (): void => {};

  /** Nor could a sample be made again from them. */
  readonly needs = (): number => Number.POSITIVE_INFINITY;

  /**
   * Keeps a sample of both outputs once the reply is on its way. Empty ones are known by their hash. `env`: what the request gave
   * the command and no span keeps; `known`: secrets of its environment.
   */
  keepLater(span: string, { stdout, stderr }: Outputs, env: Variables = {}, known?: KnownSecrets): void {
    if (stdout.total + stderr.total === 0 || !this.#isWanted()) return;
    if (this.#waitingTotal > this.#bounds.waiting) return;
    setImmediate(() => {
      this.#keep(span, { stdout: sampleOf(stdout, env, known), stderr: sampleOf(stderr, env, known) });
    });
  }

  /** The sample of a command that has ended; undefined when none is kept. */
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

  /** Sizes are in the order of their time: the first that may stay ends the search. */
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

/** What is kept beside the text costs something too. */
const ROW = 128;

function lengthOf({ stdout, stderr }: OutputSample): number {
  return (stdout?.length ?? 0) + (stderr?.length ?? 0) + ROW;
}

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
