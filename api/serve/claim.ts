import { readFileSync, unlinkSync, writeFileSync } from "node:fs";

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
  for (let attempt = 0; attempt < 3; attempt += 1) {
    if (writeNew(path, own)) return { release: () => unlinkSync(path) };
    const holder = readFileSync(path, "utf8").trim();
    const [pid, begin] = holder.split(" ");
    if (pid !== undefined && begin !== undefined && beginOf(Number(pid)) === begin) {
      throw new AlreadyRunning(`Another broker (pid ${pid}) runs with this SUBSTRATE_HOME`);
    }
    unlinkSync(path);
  }
  throw new AlreadyRunning(`Cannot claim '${path}': other brokers are starting at the same time`);
}

function writeNew(path: string, text: string): boolean {
  try {
    writeFileSync(path, text, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** When a process began, in clock ticks since boot (field 22 of /proc/PID/stat, proc(5)); undefined when it is gone. */
function beginOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}
