/** Checks cgroups of version 2: whether the doctor can make a cgroup, which limits work, and whether cgroup.kill ends its processes. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SYSTEM } from "../model/system.ts";
import type { HostCheck, HostFinding } from "./face.ts";
import { missing, ok, weaker } from "./trials.ts";

const WANTED = ["cpu", "memory", "pids"];

const UNIFIED = "# Start the kernel with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all";

export function cgroupCheck(needed: boolean, uid: number): HostCheck {
  return {
    name: "cgroup",
    what: "cgroups that limit and end their processes",
    needed,
    run: async (signal) => {
      const found = await tryOut(uid, signal);
      return needed && found.verdict === "weaker" ? { ...found, verdict: "missing" } : found;
    },
  };
}

async function tryOut(uid: number, signal: AbortSignal): Promise<HostFinding> {
  const here = ownCgroup();
  if (here === undefined) return missing("cgroup2 is not mounted", UNIFIED);
  removeStale(here);
  const folder = join(here, `${PREFIX}${process.pid}`);
  try {
    mkdirSync(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return weaker(`mkdir in '${here}' failed with ${code}`, ...delegation(uid));
  }
  const forget = removeWhenKilled(folder);
  try {
    const controllers = readFileSync(join(here, "cgroup.controllers"), "utf8").trim();
    const absent = WANTED.filter((name) => !controllers.split(" ").includes(name));
    const killed = await endsWhatIsIn(folder, signal);
    const seen = `made one in '${here}', ${killed}; controllers: ${controllers || "none"}`;
    if (absent.length === 0 && killed === ENDED) return ok(seen);
    return weaker(`${seen}; missing: ${absent.join(", ") || "cgroup.kill"}`, ...controllerMend(absent, uid));
  } finally {
    await removeCgroup(folder);
    forget();
  }
}

/** Followed by the doctor's process id. */
const PREFIX = "substrate-doctor-";

/** Removes cgroups of killed doctors. A cgroup with a process stays. */
function removeStale(here: string): void {
  const left = readdirSync(here).filter((name) => name.startsWith(PREFIX));
  for (const name of left.filter((each) => !existsSync(`/proc/${each.slice(PREFIX.length)}`))) {
    try {
      rmdirSync(join(here, name));
    } catch {
      // In use or gone, ignoring: the cgroup is not this check's.
    }
  }
}

/** Handles Ctrl-C during the check: kills the cgroup's processes, removes the cgroup and repeats the signal. */
function removeWhenKilled(folder: string): () => void {
  const leave = (name: NodeJS.Signals): void => {
    forget();
    try {
      writeFileSync(join(folder, "cgroup.kill"), "1");
      for (let attempt = 0; attempt < 50 && existsSync(folder); attempt += 1) tryToRemove(folder);
    } catch {
      // Not removed, ignoring: the next doctor removes the cgroup, and this process has no time left.
    }
    process.kill(process.pid, name);
  };
  const names = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const forget = (): void => {
    for (const name of names) process.off(name, leave);
  };
  for (const name of names) process.once(name, leave);
  return forget;
}

function tryToRemove(folder: string): void {
  try {
    rmdirSync(folder);
  } catch {
    // The kernel still holds the last process, ignoring: the caller tries again.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  }
}

const ENDED = "cgroup.kill ended a process in it";

async function endsWhatIsIn(folder: string, signal: AbortSignal): Promise<string> {
  if (!existsSync(join(folder, "cgroup.kill"))) return "it has no cgroup.kill (Linux 5.14)";
  const child = spawn("sleep", ["30"], { env: SYSTEM, stdio: "ignore", signal, killSignal: "SIGKILL" });
  const gone = new Promise<NodeJS.Signals | null>((resolve) => {
    child.once("exit", (_code, name) => resolve(name));
    child.once("error", () => resolve(null));
  });
  try {
    writeFileSync(join(folder, "cgroup.procs"), String(child.pid));
    writeFileSync(join(folder, "cgroup.kill"), "1");
  } catch (error) {
    child.kill("SIGKILL");
    await gone;
    return `a process could not be put into it (${(error as NodeJS.ErrnoException).code})`;
  }
  return (await gone) === "SIGKILL" ? ENDED : "cgroup.kill did not end a process in it";
}

/** Removes a cgroup; retries until the kernel has released its last process. */
async function removeCgroup(folder: string): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return rmdirSync(folder);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EBUSY" || attempt === 50) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}

/** Returns the cgroup2 folder of this process; undefined without a cgroup2 mount. */
export function ownCgroup(): string | undefined {
  const mount = cgroupMount();
  const path = /^0::(.*)$/m.exec(readFileSync("/proc/self/cgroup", "utf8"))?.[1];
  if (mount === undefined || path === undefined) return undefined;
  const own = join(mount, path);
  // In a cgroup namespace the path may lead out of the mount.
  return existsSync(join(own, "cgroup.procs")) ? own : mount;
}

/** Returns the mount point of cgroup2 (proc_pid_mountinfo(5)). */
export function cgroupMount(): string | undefined {
  const lines = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  return lines.find((line) => / - cgroup2 /.test(line))?.split(" ")[4];
}

function controllerMend(absent: readonly string[], uid: number): readonly string[] {
  const bound = absent.filter((name) => isBoundToVersion1(name));
  if (bound.length > 0) return [`# ${bound.join(", ")}: bound to cgroups of version 1. ${UNIFIED.slice(2)}`];
  return absent.length === 0 ? ["# Use Linux 5.14 or newer"] : delegation(uid);
}

/** The second word of a line in /proc/cgroups is the hierarchy: 0 means version 2, or unbound. */
function isBoundToVersion1(name: string): boolean {
  const line = new RegExp(`^${name}\\s+(\\d+)`, "m").exec(readFileSync("/proc/cgroups", "utf8"));
  return line !== null && line[1] !== "0";
}

function delegation(uid: number): readonly string[] {
  if (uid === 0) return ["# Run the broker where it may write its cgroup: a service with Delegate=yes"];
  return [
    "sudo mkdir -p /etc/systemd/system/user@.service.d",
    "printf '[Service]\\nDelegate=cpu memory pids io\\n' | sudo tee /etc/systemd/system/user@.service.d/substrate.conf",
    "sudo systemctl daemon-reload",
    "# log in again, then let systemd start the broker: substrate service install",
  ];
}
