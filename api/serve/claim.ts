import { spawnSync } from "node:child_process";
import { linkSync, readFileSync, renameSync, unlinkSync, writeFileSync } from "node:fs";

const ATTEMPTS = 20;

/** Error: another broker runs or starts in the same home. */
export class AlreadyRunning extends Error {
  override readonly name = "AlreadyRunning";
}

export type Claim = {
  /** False once the home was removed, or another broker has claimed a new home with the same path. */
  readonly isHeld: () => boolean;
  readonly release: () => void;
};

/**
 * Claims the home for the calling process, because trace and database allow a single writer. The claim holds the pid and the
 * process's start time, so a reused pid is not taken for a broker. Throws {@link AlreadyRunning}.
 */
export function claimStart(path: string): Claim {
  const begin = beginOf(process.pid);
  if (begin === undefined)
    throw new Error("Cannot tell when this process started: another broker would take the home");
  const own = `${process.pid} ${begin}`;
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, own, { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      // link(2) is atomic: no reader sees a half-written claim.
      if (linkNew(draft, path)) return claimOf(path, own);
      const holder = readIfThere(path);
      if (holder === undefined) continue;
      const [pid, since] = holder.split(" ");
      if (pid !== undefined && since !== undefined && beginOf(Number(pid)) === since) {
        throw new AlreadyRunning(`Another broker (pid ${pid}) runs with this SUBSTRATE_HOME`);
      }
      removeStale(path, holder);
    }
    throw new AlreadyRunning(`Cannot claim '${path}': other brokers are starting at the same time`);
  } finally {
    unlinkSync(draft);
  }
}

function claimOf(path: string, own: string): Claim {
  const isHeld = (): boolean => readIfThere(path) === own;
  return { isHeld, release: () => isHeld() && unlinkSync(path) };
}

/** Reads the pid of the live process holding the claim; undefined without a live holder. */
export function claimedBy(path: string): number | undefined {
  const [pid, begin] = readIfThere(path)?.split(" ") ?? [];
  return pid !== undefined && begin !== undefined && beginOf(Number(pid)) === begin ? Number(pid) : undefined;
}

function linkNew(draft: string, path: string): boolean {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** Removes a stale claim: renames, then compares. Puts back a live claim that another starter made meanwhile. */
function removeStale(path: string, stale: string): void {
  const aside = `${path}.${process.pid}.stale`;
  try {
    renameSync(path, aside);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  if (readIfThere(aside) !== stale) linkNew(aside, path);
  unlinkSync(aside);
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Start time of a process, as text that only the same process has; undefined for an ended process, also while its parent has not
 * reaped it: in a container, process 1 may never do so.
 */
export function beginOf(pid: number): string | undefined {
  return process.platform === "linux" ? beginFromProc(pid) : beginFromPs(pid);
}

/** In seconds, from ps(1) of BSD: `lstart` follows locale and time zone, which a service manager may set otherwise. */
function beginFromPs(pid: number): string | undefined {
  const words = ["-o", "stat=", "-o", "lstart=", "-p", String(pid)];
  const { status, stdout, error } = spawnSync("/bin/ps", words, {
    encoding: "utf8",
    env: { LC_ALL: "C", TZ: "UTC" },
  });
  // Without an answer a live broker would count as dead, and two would write one trace.
  if (error !== undefined) throw new Error(`Cannot ask '/bin/ps' for process ${pid}: ${error.message}`);
  const [state = "Z", ...begin] = stdout.trim().split(/\s+/);
  return status !== 0 || state.startsWith("Z") ? undefined : begin.join("_");
}

/** In clock ticks since boot: field 22 of /proc/PID/stat (proc(5)). */
function beginFromProc(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // States Z and X: ended, but not yet reaped by the parent.
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
