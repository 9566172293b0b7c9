/** What processes hold in memory, as the host's /proc has it. */
import { readdirSync, readFileSync } from "node:fs";

/**
 * Every process below one, at this moment.
 * @param {number} top
 * @returns {readonly number[]}
 */
export function below(top) {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const stat = readOrNothing(`/proc/${name}/stat`);
      // proc(5): after the name in parentheses come the state and the parent.
      const parent = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1];
      return parent === undefined ? [] : [{ pid: Number(name), parent: Number(parent) }];
    });
  return descendants(top, parents);
}

/**
 * @param {number} of
 * @param {readonly { pid: number, parent: number }[]} parents
 * @returns {number[]}
 */
function descendants(of, parents) {
  const children = parents.filter(({ parent }) => parent === of);
  return children.flatMap(({ pid }) => [pid, ...descendants(pid, parents)]);
}

/**
 * Sums in bytes. Processes that share one address space (a leader and its idle runner) are counted each: never less than
 * what is held.
 * @param {readonly number[]} pids
 */
export function held(pids) {
  const sum = (/** @type {string} */ file, /** @type {string} */ field) =>
    pids.reduce((total, pid) => total + kibibytes(`/proc/${pid}/${file}`, field) * 1024, 0);
  return {
    processes: pids.length,
    pss: sum("smaps_rollup", "Pss"),
    rss: sum("smaps_rollup", "Rss"),
    pageTables: sum("status", "VmPTE"),
  };
}

/** @param {number} pid @returns {number} bytes */
export function resident(pid) {
  return kibibytes(`/proc/${pid}/status`, "VmRSS") * 1024;
}

/** @param {string} path @param {string} field Throws when it is not there: a process that is not seen would count as nothing. */
function kibibytes(path, field) {
  const found = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(readFileSync(path, "utf8"));
  if (found?.[1] === undefined) throw new Error(`'${path}' names no ${field}`);
  return Number(found[1]);
}

/** @param {string} path */
function readOrNothing(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
}
