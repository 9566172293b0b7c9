import { linkSync, readFileSync, renameSync, unlinkSync, writeFileSync } from "node:fs";

const ATTEMPTS = 20;

/** Another broker runs, or is starting, in the same home. */
export class AlreadyRunning extends Error {
  override readonly name = "AlreadyRunning";
}

/**
 * Makes this process the only broker of its home: the trace and the database have one writer. The claim names
 * the process and when it began, so that a number used again by another program is not taken for a broker.
 * Throws {@link AlreadyRunning}.
 */
export function claimStart(path: string): { readonly release: () => void } {
  const own = `${process.pid} ${beginOf(process.pid)}`;
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, own, { mode: 0o600 });
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      // A link appears whole or not at all: nobody reads a claim that is half written.
      if (linkNew(draft, path)) return { release: () => unlinkSync(path) };
      const holder = readIfThere(path);
      if (holder === undefined) continue;
      const [pid, begin] = holder.split(" ");
      if (pid !== undefined && begin !== undefined && beginOf(Number(pid)) === begin) {
        throw new AlreadyRunning(`Another broker (pid ${pid}) runs with this SUBSTRATE_HOME`);
      }
      removeStale(path, holder);
    }
    throw new AlreadyRunning(`Cannot claim '${path}': other brokers are starting at the same time`);
  } finally {
    unlinkSync(draft);
  }
}

/** The process that holds a claim now; undefined when none does. */
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

/** Moves the claim aside and looks again: if another starter has replaced it meanwhile, its claim is put back. */
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

/** When a process began, in clock ticks since boot (field 22 of /proc/PID/stat, proc(5)); undefined when it is gone. */
function beginOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // Z and X: it has ended, and only its parent has not looked yet.
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}
