/** Medians, ratios and the order of what is measured. */

/**
 * Runs each way once a round and returns its times in milliseconds.
 * @param {Record<string, () => Promise<void>>} ways
 * @param {number} rounds
 * @returns {Promise<Record<string, number[]>>}
 */
export async function inTurn(ways, rounds) {
  const timed = Object.entries(ways).map(([name, run]) => {
    const time = async () => {
      const begin = performance.now();
      await run();
      return [performance.now() - begin];
    };
    return [name, time];
  });
  return collectInTurn(Object.fromEntries(timed), rounds);
}

/**
 * The same for ways that measure themselves: all that each returned.
 * @param {Record<string, () => Promise<readonly number[]>>} ways
 * @param {number} rounds
 * @returns {Promise<Record<string, number[]>>}
 */
export async function collectInTurn(ways, rounds) {
  /** @type {Record<string, number[]>} */
  const collected = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, run] of shuffled(Object.entries(ways), round)) collected[name]?.push(...(await run()));
  }
  return collected;
}

/**
 * The ways in another order each round, the same orders in every run: what one way leaves behind for the next (a namespace
 * that the kernel takes down later, a cold cache) then burdens all of them alike. Each order is as likely as any other
 * (Fisher and Yates, with mulberry32 for the dice).
 * @template T @param {T[]} items @param {number} round
 */
export function shuffled(items, round) {
  const order = [...items];
  const next = dice(round);
  for (let last = order.length - 1; last > 0; last -= 1) {
    const other = Math.floor(next() * (last + 1));
    const [moved] = order.splice(other, 1);
    if (moved !== undefined) order.splice(last, 0, moved);
  }
  return order;
}

/** @param {number} seed @returns {() => number} from 0 up to, not including, 1 */
function dice(seed) {
  // Seeds that follow each other must not make orders that do.
  let state = Math.imul(seed + 1, 0x9e37_79b1) >>> 0;
  return () => {
    state = (state + 0x6d2b_79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @param {readonly number[]} times */
export function summarise(times) {
  return { median_ms: round3(quantile(times, 0.5)), p99_ms: round3(quantile(times, 0.99)) };
}

/** @param {readonly number[] | undefined} times */
export function median(times = []) {
  return quantile(times, 0.5);
}

/** @param {number} value */
export function round3(value) {
  return Math.round(value * 1000) / 1000;
}

/**
 * `limit` is the most that a value may be, `least` the least.
 * @typedef {{ what: string, value: number, unit?: string } & ({ limit: number } | { least: number })} Row
 * @param {readonly Row[]} rows
 * @returns {boolean} whether every value is within its limit; one that is no number is not
 */
export function printLimits(rows) {
  process.stdout.write(`${"".padEnd(66)}${"measured".padStart(12)}${"limit".padStart(18)}\n`);
  for (const row of rows) {
    const { what, value, unit = "" } = row;
    const limit = "limit" in row ? `at most ${row.limit}` : `at least ${row.least}`;
    process.stdout.write(
      `${what.padEnd(66)}${`${round3(value)}${unit}`.padStart(12)}${limit.padStart(18)}${unit}${isWithin(row) ? "" : "  BROKEN"}\n`,
    );
  }
  return rows.every(isWithin);
}

/** @param {Row} row */
function isWithin(row) {
  return "limit" in row ? row.value <= row.limit : row.value >= row.least;
}

/** @param {readonly number[]} times @param {number} share */
export function quantile(times, share) {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
