import { readdirSync, readFileSync } from "node:fs";

/** A process of the host, from /proc. */
export type HostProcess = {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  readonly uid: number;
  /** Start time in ticks since boot: together with the pid a unique identity. */
  readonly begin: string;
};

const INIT = "substrate-init";

/** Names of Node's main thread, in various versions. */
const NODE = /^(node|MainThread)/;

/** Processes that adopt orphans: the first process, and a user's service manager. */
const ADOPTER = /^(systemd|init)$/;

/**
 * Returns a user's worlds without a broker: outer processes of `substrate-init` adopted by another process. Left alone: a process
 * whose parent lies outside this pid namespace, and a process started by a debugger or a shell.
 */
export function orphanedWorlds(processes: readonly HostProcess[], uid: number): readonly HostProcess[] {
  const byPid = new Map(processes.map((process) => [process.pid, process] as const));
  return processes.filter(({ name, uid: owner, parent }) => {
    const above = byPid.get(parent)?.name;
    if (name !== INIT || owner !== uid || above === undefined) return false;
    // In a container the broker may run as the first process.
    return parent === 1 ? above !== INIT && !NODE.test(above) : ADOPTER.test(above);
  });
}

export function hostProcesses(): readonly HostProcess[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const process = readProcess(Number(name));
      return process === undefined ? [] : [process];
    });
}

/** Returns undefined for a dead process. Parses /proc/PID/stat from the last bracket: the name may contain anything. */
export function readProcess(pid: number): HostProcess | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const end = stat.lastIndexOf(")");
    const [state, parent = "0", ...rest] = stat.slice(end + 2).split(" ");
    if (state === "Z" || state === "X") return undefined;
    return {
      pid,
      parent: Number(parent),
      name: stat.slice(stat.indexOf("(") + 1, end),
      uid: Number(/^Uid:\s*(\d+)/m.exec(status)?.[1] ?? -1),
      begin: rest[17] ?? "",
    };
  } catch {
    // The process has ended meanwhile.
    return undefined;
  }
}
