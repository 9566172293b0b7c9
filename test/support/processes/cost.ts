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
