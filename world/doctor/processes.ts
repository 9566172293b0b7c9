import { readdirSync, readFileSync } from "node:fs";

/** A process of the host, as /proc shows it to everybody. */
export type HostProcess = {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  readonly uid: number;
  /** When it began, in ticks since boot: with the pid it names one process for ever. */
  readonly begin: string;
};

const INIT = "substrate-init";

/** Names that Node gives its main thread, over the versions. */
const NODE = /^(node|MainThread)/;

/** Processes that adopt whom another one left behind: the first, and a user's service manager. */
const ADOPTER = /^(systemd|init)$/;

/**
 * The worlds of a user whose broker is gone: outer processes of `substrate-init` that were adopted. One whose parent lies
 * outside of this pid namespace cannot be judged and is left alone, and so is one that a debugger or a shell started.
 */
export function orphanedWorlds(processes: readonly HostProcess[], uid: number): readonly HostProcess[] {
  const byPid = new Map(processes.map((process) => [process.pid, process] as const));
  return processes.filter(({ name, uid: owner, parent }) => {
    const above = byPid.get(parent)?.name;
    if (name !== INIT || owner !== uid || above === undefined) return false;
    // In a container a broker may be the first process itself.
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

/** Undefined when it is gone. Fields of /proc/PID/stat are counted from the last bracket: a name may hold anything. */
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
    // It has ended meanwhile.
    return undefined;
  }
}
