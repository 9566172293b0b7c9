import { decide, type CompiledPolicy, type PlainVerdict, readArgv } from "../policy/index.ts";
import { plainVerdict } from "../policy-cases/judge-case.ts";
import type { Need } from "./command-fates.ts";

const STRICTNESS: Readonly<Record<PlainVerdict, number>> = { allow: 0, isolate: 1, ask: 2, deny: 3 };

/** A command next to an observed one that nobody ran, and that the proposal would let pass. */
export type Widening = { readonly need: Need; readonly words: readonly string[] };

/**
 * Commands that differ from an observed one in one word, are not observed, and are judged more gently after than before.
 * `free` says which words of a need may be others (a `*` stands there). `tried` counts them all. Pure.
 */
export function widenings(
  before: CompiledPolicy,
  after: CompiledPolicy,
  needs: readonly Need[],
  free: (need: Need) => number | undefined,
): { readonly tried: number; readonly found: readonly Widening[] } {
  const observed = new Set(needs.map(({ words }) => JSON.stringify(words)));
  const all = needs.flatMap((need) =>
    neighboursOf(need.words, free(need))
      .filter((words) => !observed.has(JSON.stringify(words)))
      .map((words): Widening => ({ need, words })),
  );
  const found = all.filter(
    ({ need, words }) => strictness(after, words, need) < strictness(before, words, need),
  );
  return { tried: all.length, found };
}

function strictness(policy: CompiledPolicy, words: readonly string[], { where }: Need): number {
  return STRICTNESS[plainVerdict(decide(policy, readArgv(words), where).verdict) as PlainVerdict];
}

/** One word more, less, or another; the same name in another folder. */
function neighboursOf(words: readonly string[], free: number | undefined): readonly (readonly string[])[] {
  const [program = "", ...rest] = words;
  const fixed = rest.map((_word, index) => index + 1).filter((index) => index !== free);
  return [
    [...words, "unseen-word"],
    [...words, "--unseen-option"],
    [`${program}-unseen`, ...rest],
    // A program that is named by its folder is the same one behind another './'.
    ...(program.includes("/") ? [] : [[`./${program}`, ...rest]]),
    ...fixed.map((index) => words.with(index, `${words[index] ?? ""}-unseen`)),
    ...fixed.map((index) => words.toSpliced(index, 1)),
  ];
}
