/**
 * Home folders that the suite makes for whoever runs it. No test touches the home of a person: the suite's lies in it,
 * where a world shows the host's own tree, and is all that comes and goes there.
 */
import { chmodSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { removeTrees } from "../users/folders.ts";
import { isOver, type Run, thisRun } from "./runs.ts";

const PREFIX = "substrate-test-";
/** In each of them: says which run made it. */
const MARK = ".substrate-test-home";

/** Makes one, and returns its path. Throws where the person's own home takes no folder. */
export function makeHome(inside: string): string {
  const run = JSON.stringify(thisRun());
  try {
    const home = mkdtempSync(join(inside, PREFIX));
    writeFileSync(join(home, MARK), run);
    // As useradd makes them.
    chmodSync(home, 0o755);
    return home;
  } catch (error) {
    throw new Error(
      `Cannot make a home folder for the tests in '${inside}': ${String(error)}. Set HOME to a folder that this user may write`,
      { cause: error },
    );
  }
}

/** Removes one that {@link makeHome} made, with everything in it. Throws for any other folder, and changes nothing then. */
export function removeHome(home: string): void {
  if (markOf(home) === undefined) throw new Error(`Cannot remove '${home}': no run of the tests made it`);
  const mounted = mountPoints().find((path) => path.startsWith(`${home}/`));
  if (mounted !== undefined)
    throw new Error(`Cannot remove '${home}': '${mounted}' is mounted in it. Unmount that first`);
  // The mark goes last: what is killed half-way is found again by the next run.
  const names = readdirSync(home).filter((name) => name !== MARK);
  removeTrees(...names.map((name) => join(home, name)));
  rmSync(home, { recursive: true });
}

/** Removes those of runs that were killed before they could. One that cannot be removed is named, and stays. */
export function removeLeftOverHomes(inside: string): void {
  for (const name of readdirSync(inside).filter((each) => each.startsWith(PREFIX))) {
    const home = join(inside, name);
    const run = markOf(home);
    if (run === undefined || !isOver(run)) continue;
    try {
      removeHome(home);
    } catch (error) {
      process.stderr.write(`A killed run's home stays: ${String(error)}\n`);
    }
  }
}

function markOf(home: string): Run | undefined {
  try {
    const stat = lstatSync(home);
    if (!stat.isDirectory() || stat.uid !== process.getuid?.()) return undefined;
    return JSON.parse(readFileSync(join(home, MARK), "utf8")) as Run;
  } catch {
    // Without a mark it is somebody's own, ignoring: it is not touched.
    return undefined;
  }
}

/** In mountinfo a space stands as `\040` (proc_pid_mountinfo(5)). */
function mountPoints(): readonly string[] {
  return readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .flatMap((line) => line.split(" ")[4] ?? [])
    .map((path) =>
      path.replace(/\\([0-7]{3})/g, (_all, digits: string) => String.fromCharCode(parseInt(digits, 8))),
    );
}
