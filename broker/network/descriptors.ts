/** How many connections the broker's descriptors are enough for. */
import { readFileSync } from "node:fs";

/** A connection has one to the world and one to the outside. */
const OF_CONNECTION = 2;

/** Half of the descriptors are for all else: agents' requests, worlds, outputs, files. */
const SHARE = 0.5;

/** Where no limit is told, or none is set. */
const WITHOUT_LIMIT = 65_536;

/**
 * Of all worlds together. Without a bound one command could open as many as the broker has descriptors for, and then
 * nobody is answered any more, the operator neither.
 *
 * @param limits text as of /proc/self/limits (proc_pid_limits(5)); Node raises its soft limit to the hard one.
 */
export function mostConnections(limits = readFileSync("/proc/self/limits", "utf8")): number {
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  const descriptors = soft === undefined ? WITHOUT_LIMIT : Math.min(Number(soft), WITHOUT_LIMIT);
  return Math.floor((descriptors * SHARE) / OF_CONNECTION);
}
