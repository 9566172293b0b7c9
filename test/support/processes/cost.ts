/** What work costs, told so that a busy machine does not change the answer. */

const TRIES = 3;

/** Milliseconds of processor time, the least of three tries: what others do meanwhile is theirs. */
export function leastCpuMs(work: () => unknown): number {
  return Math.min(...Array.from({ length: TRIES }, () => cpuMs(work)));
}

function cpuMs(work: () => unknown): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

/** Milliseconds until a promise settles, the least of five tries. */
export async function leastWaitMs(work: () => Promise<unknown>): Promise<number> {
  const all: number[] = [];
  for (let turn = 0; turn < 5; turn += 1) {
    const begin = performance.now();
    await work();
    all.push(performance.now() - begin);
  }
  return Math.min(...all);
}

/**
 * How many times the processor time of a small size a size 64 times as large takes.
 * What grows with the size takes 64 times as much, and here up to 550: larger strings miss the caches and cost the
 * collector more. What grows with the square takes 4,096 times as much. A smaller step does not tell them apart: of
 * 8 times the size the one took 25 times as long, and the other would take 64.
 */
export function growthOverSixtyFour(smallest: number, workOn: (size: number) => () => unknown): number {
  const [small, large] = [workOn(smallest), workOn(64 * smallest)];
  cpuMs(large);
  const smalls = Array.from({ length: 9 }, () => cpuMs(small)).toSorted((one, other) => one - other);
  return leastCpuMs(large) / Math.max(smalls[4] ?? Number.NaN, 0.001);
}

export const MOST_GROWTH = 1500;
