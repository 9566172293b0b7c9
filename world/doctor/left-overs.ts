/** Finds the left-overs of dead brokers, in every place where worlds leave data, and removes them on request. */
import { readdirSync, readFileSync, rmdirSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { DoctorOrder, HostCheck, HostFinding } from "./face.ts";
import { isOrphan, type Maker, makerOf, thisMaker } from "../cgroup/names.ts";
import { removeLayers } from "../overlay/layers.ts";
import { cgroupMount } from "./cgroups.ts";
import { DOCTOR_FOLDER } from "./overlays.ts";
import { type HostProcess, hostProcesses, orphanedWorlds, readProcess } from "./processes.ts";
import { ok, weaker, wordsOf } from "./trials.ts";

/** A world ends within 2 s of its broker. */
const END_PATIENCE_MS = 2500;

/** Folders of a running trial are younger. */
const UNDER_WAY_MS = 60_000;

/** Name of a trial cgroup, with its maker's process id. */
const TRY = /^substrate[a-z-]*-(\d+)(?:\.\w+)?$/;

const MEND = "substrate world doctor --mend";

/** A left-over: description and removal function. */
type LeftOver = { readonly what: string; readonly remove: () => void | Promise<void> };

export function leftOverChecks(order: DoctorOrder, uid: number): readonly HostCheck[] {
  const check = (
    name: string,
    what: string,
    find: (signal: AbortSignal) => readonly LeftOver[] | Promise<readonly LeftOver[]>,
  ): HostCheck => ({
    name,
    what,
    needed: false,
    run: async (signal) => await report(await find(signal), order.mend),
  });
  return [
    check("left-processes", "worlds of dead brokers", (signal) => leftWorlds(uid, signal)),
    check("left-layers", "overlay layers that no command or change needs", () => [
      ...leftLayers(order),
      ...leftTries(order.overlay, uid),
    ]),
    check("left-cgroups", "cgroups of ended worlds", () => leftCgroups(uid)),
  ];
}

/** Reports the left-overs; with `mend`, removes them and reports removals and failures. */
async function report(found: readonly LeftOver[], mend: boolean): Promise<HostFinding> {
  const names = found.map(({ what }) => what);
  if (found.length === 0) return ok("none");
  if (!mend) return weaker(names.join("; "), MEND);
  const resisting: string[] = [];
  for (const { what, remove } of found) {
    try {
      await remove();
    } catch (error) {
      resisting.push(`${what} (${wordsOf(error)})`);
    }
  }
  if (resisting.length > 0) return weaker(`cannot remove ${resisting.join("; ")}`, "# Remove it by hand");
  return ok(`removed ${names.join("; ")}`);
}

async function leftWorlds(uid: number, signal: AbortSignal): Promise<readonly LeftOver[]> {
  const first = orphanedWorlds(hostProcesses(), uid);
  if (first.length === 0) return [];
  await sleep(END_PATIENCE_MS, undefined, { signal });
  return first.filter(isStillThere).map((world) => ({
    what: `process ${world.pid} (${world.name})`,
    remove: () => endWorld(world),
  }));
}

function isStillThere({ pid, begin }: HostProcess): boolean {
  return readProcess(pid)?.begin === begin;
}

/** Kills the outer process: PID 1 of the world dies with it, and everything inside with PID 1. */
async function endWorld(world: HostProcess): Promise<void> {
  if (isStillThere(world)) process.kill(world.pid, "SIGKILL");
  for (const end = Date.now() + END_PATIENCE_MS; isStillThere(world); await sleep(20))
    if (Date.now() > end) throw new Error("it does not end");
}

function leftLayers({ overlay, isWanted }: DoctorOrder): readonly LeftOver[] {
  return entriesOf(overlay)
    .filter((name) => /^(spn|wld)_/.test(name) && !isWanted(name))
    .map((name) => folder(join(overlay, name)));
}

/** Returns folders of killed trials: those of probes, and the doctor's own. */
function leftTries(overlay: string, uid: number): readonly LeftOver[] {
  const places = [
    [tmpdir(), "substrate-probe-"],
    ...ancestors(overlay).map((path) => [path, DOCTOR_FOLDER] as const),
  ] as const;
  return places.flatMap(([place, prefix]) =>
    entriesOf(place)
      .filter((name) => name.startsWith(prefix))
      .map((name) => join(place, name))
      .filter((path) => isOldAndOf(path, uid))
      .map(folder),
  );
}

function isOldAndOf(path: string, uid: number): boolean {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat !== undefined && stat.uid === uid && Date.now() - stat.mtimeMs > UNDER_WAY_MS;
}

function folder(path: string): LeftOver {
  return { what: `'${path}'`, remove: () => removeLayers(path) };
}

/**
 * Returns empty cgroups of worlds and trials whose maker is gone. Idle brokers keep such cgroups too, and the folder shared by
 * all brokers stays for the next broker.
 */
function leftCgroups(uid: number): readonly LeftOver[] {
  const mount = cgroupMount();
  if (mount === undefined) return [];
  const maker = thisMaker();
  return cgroupsBelow(mount)
    .filter((path) => isDead(path, uid, maker))
    .map((path) => ({ what: `cgroup '${path}'`, remove: () => removeTree(path) }));
}

function isDead(path: string, uid: number, maker: Maker): boolean {
  const name = basename(path);
  try {
    const isEmpty = /^populated 0$/m.test(readFileSync(join(path, "cgroup.events"), "utf8"));
    if (!isEmpty || statSync(path).uid !== uid) return false;
  } catch {
    // Ignoring: its broker has removed the cgroup meanwhile.
    return false;
  }
  const pid = TRY.exec(name)?.[1];
  return pid === undefined ? isOrphan(name, maker) : readProcess(Number(pid)) === undefined;
}

/** Finds cgroups that belong to a single world or trial; their children are removed with them. */
function cgroupsBelow(folderPath: string): readonly string[] {
  return foldersIn(folderPath).flatMap((name) => {
    const path = join(folderPath, name);
    return makerOf(name) !== undefined || TRY.test(name) ? [path] : cgroupsBelow(path);
  });
}

function removeTree(path: string): void {
  for (const name of foldersIn(path)) removeTree(join(path, name));
  rmdirSync(path);
}

function foldersIn(path: string): readonly string[] {
  try {
    return readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [entry.name] : [],
    );
  } catch {
    // Gone or unreadable counts as empty.
    return [];
  }
}

function entriesOf(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    // Missing or unreadable: nothing of Substrate's is there.
    return [];
  }
}

function ancestors(path: string): readonly string[] {
  return path === "/" ? ["/"] : [path, ...ancestors(dirname(path))];
}
