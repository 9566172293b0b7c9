/**
 * What commands wrote, in small and without secrets, for the text diff of a replay. Copied when the reply is on its way, and
 * committed with the watermark of the trace's index: no command waits for it. What is not kept is missed, never made up.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Database, RootDatabase } from "lmdb";
import type { Variables } from "../model/environment.ts";
import type { BoundedOutput } from "../worlds/output.ts";
import type { Changes, Follower } from "../spans/follower.ts";
import type { KnownSecrets } from "../secrets/redact.ts";
import { sampleOf } from "./sample.ts";

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
