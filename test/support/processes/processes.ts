import { readdirSync, readFileSync } from "node:fs";

/** The pids of this machine whose command line holds a text: a marker that a test put into its own commands. */
export function processesWith(marker: string): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => pid !== process.pid && commandLine(pid).includes(marker));
}

/** All descendants of a process. */
export function descendants(pid: number): readonly number[] {
  const children = tasks(pid).flatMap((task) => childrenOf(pid, task));
  return children.flatMap((child) => [child, ...descendants(child)]);
}

function childrenOf(pid: number, task: string): readonly number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${task}/children`, "utf8");
    return children.split(" ").filter(Boolean).map(Number);
  } catch {
    // It has ended meanwhile.
    return [];
  }
}

function tasks(pid: number): readonly string[] {
  try {
    return readdirSync(`/proc/${pid}/task`);
  } catch {
    // It has ended meanwhile.
    return [];
  }
}

/** What a process is called in the innermost pid namespace that it is in: PID 1 of a world is 1. */
export function innerPid(pid: number): number | undefined {
  const found = /^NSpid:.*\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return found === undefined ? undefined : Number(found);
}

function commandLine(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8");
  } catch {
    // It has ended meanwhile.
    return "";
  }
}

/** The pid of a process's parent (proc_pid_stat(5), field 4). Throws when the process is gone. */
export function parentOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
}
