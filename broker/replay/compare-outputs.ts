import type { Span } from "../../schemas/generated/types.ts";
import type { OutputSample, OutputSamples } from "./output-samples.ts";
import { createTwoFilesPatch } from "diff";

type Stream = "stdout" | "stderr";

export type OutputCompared = {
  readonly matches: boolean | null;
  /** Null for equal streams, and for streams without kept text. */
  readonly diff: string | null;
};

export type OutputsCompared = {
  readonly stdout: OutputCompared;
  readonly stderr: OutputCompared;
  readonly notes: readonly string[];
};

type Noted = OutputCompared & { readonly note: string | undefined };

/** Compares the hashes of the whole streams; samples only show the difference. */
export async function compareOutputs(samples: OutputSamples, was: Span, is: Span): Promise<OutputsCompared> {
  const kept = await Promise.all([samples.find(was.span_id), samples.find(is.span_id)]);
  const stdout = compared("stdout", [was, is], kept);
  const stderr = compared("stderr", [was, is], kept);
  return { stdout, stderr, notes: [stdout.note, stderr.note].filter((note) => note !== undefined) };
}

function compared(
  stream: Stream,
  [was, is]: readonly [Span, Span],
  [old, fresh]: readonly [OutputSample | undefined, OutputSample | undefined],
): Noted {
  const [then, now] = [was[`${stream}_sha256`], is[`${stream}_sha256`]];
  if (then === null || now === null)
    return { matches: null, diff: null, note: `${stream} was not hashed, so it cannot be compared` };
  if (then === now) return { matches: true, diff: null, note: undefined };
  const texts = [textOf(stream, then, old), textOf(stream, now, fresh)] as const;
  if (texts[0] === undefined || texts[1] === undefined)
    return { matches: false, diff: null, note: `${stream} differs; no sample of it is kept to show how` };
  const diff = textDiff(texts[0], texts[1]);
  if (diff === undefined) return { matches: false, diff: null, note: `${stream} differs outside its sample` };
  return { matches: false, diff, note: undefined };
}

/** SHA-256 of empty input; empty streams have no sample. */
const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

function textOf(stream: Stream, hash: string, sample: OutputSample | undefined): string | undefined {
  return hash === EMPTY ? "" : (sample?.[stream] ?? undefined);
}

/** Bound on edits before a diff is given up: the search grows with the square of the edits. */
const MAX_EDITS = 1000;

/** Builds the unified diff of two samples of one stream; undefined for equal, or too different, samples. */
export function textDiff(recorded: string, now: string): string | undefined {
  if (recorded === now) return undefined;
  const patch = createTwoFilesPatch("recorded", "now", recorded, now, undefined, undefined, {
    context: 3,
    maxEditLength: MAX_EDITS,
    timeout: 50,
  });
  return patch?.replace(/^=+\n/, "");
}
