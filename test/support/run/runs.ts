/** Which run of the suite made something, and whether that run is over: what a killed run left may then be removed. */
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

export type Run = {
  readonly host: string;
  /** A new one after each boot (random(4)). */
  readonly boot: string;
  /** The namespace that `pid` is a number of: another container may use the same home folder. */
  readonly pids: string;
  readonly pid: number;
  readonly start: string;
};

export function thisRun(): Run {
  const start = startOf(process.pid);
  if (start === undefined)
    throw new Error(`Cannot read '/proc/${process.pid}/stat', which is this process's own`);
  return { ...here(), pid: process.pid, start };
}

/** False also where nobody here can tell: another machine, another container. */
export function isOver(run: Run): boolean {
  const { host, boot, pids } = here();
  if (run.host !== host) return false;
  if (run.boot !== boot) return true;
  return run.pids === pids && startOf(run.pid) !== run.start;
}

/** When a process started, in clock ticks since boot (proc_pid_stat(5), field 22); undefined when it is gone. */
export function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name of the program stands in brackets and may hold spaces.
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

function here(): Pick<Run, "host" | "boot" | "pids"> {
  return {
    host: hostname(),
    boot: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
    pids: readlinkSync("/proc/self/ns/pid"),
  };
}
