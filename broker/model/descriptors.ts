/** How many files and sockets the broker may have open, for those who share them out. */
import { readFileSync } from "node:fs";

/** Assumed when the limit is unreadable; also the upper bound. */
const WITHOUT_LIMIT = 65_536;

/** @param limits text as of /proc/self/limits (proc_pid_limits(5)); Node raises its soft limit to the hard one. */
export function descriptorLimit(limits = ownLimits()): number {
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  return soft === undefined ? WITHOUT_LIMIT : Math.min(Number(soft), WITHOUT_LIMIT);
}

/** Other systems have no such file, and no worlds. */
function ownLimits(): string {
  return process.platform === "linux" ? readFileSync("/proc/self/limits", "utf8") : "";
}
