import { setImmediate as turn } from "node:timers/promises";

/** Entries of one turn of the event loop: a millisecond or two. */
const A_TURN = 200;

/**
 * Begins to write a slice of entries in each turn of the event loop; with the last slice what `also` writes, if none of the others
 * failed. Settles with what failed first.
 */
export async function writeInTurns<T>(
  entries: readonly T[],
  write: (slice: readonly T[]) => readonly Promise<unknown>[],
  also: () => readonly Promise<unknown>[],
): Promise<PromiseRejectedResult | undefined> {
  const slices: Promise<PromiseRejectedResult | undefined>[] = [];
  let from = 0;
  for (; entries.length - from > A_TURN; from += A_TURN) {
    slices.push(firstFailure(write(entries.slice(from, from + A_TURN))));
    await turn();
  }
  const failed = slices.length === 0 ? [] : await Promise.all(slices);
  return (
    failed.find((one) => one !== undefined) ??
    (await firstFailure([...write(entries.slice(from)), ...also()]))
  );
}

async function firstFailure(writes: readonly Promise<unknown>[]): Promise<PromiseRejectedResult | undefined> {
  return (await Promise.allSettled(writes)).find((write) => write.status === "rejected");
}

/** So many of a map, those that were put first. */
export function firstOf<K, V>(map: ReadonlyMap<K, V>, count: number): readonly (readonly [K, V])[] {
  const first: (readonly [K, V])[] = [];
  for (const one of map) {
    if (first.length === count) break;
    first.push(one);
  }
  return first;
}
