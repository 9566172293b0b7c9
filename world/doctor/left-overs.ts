/** What brokers that are gone have left: looked for in the places where worlds leave something, and removed on request. */
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

/** Folders of a try that is under way are younger. */
const UNDER_WAY_MS = 60_000;

/** A cgroup that was made to see whether one can be: it has its maker's number in its name. */
const TRY = /^substrate[a-z-]*-(\d+)(?:\.\w+)?$/;

const MEND = "substrate world doctor --mend";

/** Something that is left, in words, and how it goes. */
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
    check("left-processes", "worlds whose broker is gone", (signal) => leftWorlds(uid, signal)),
    check("left-layers", "layers of overlays that nobody can want", () => [
      ...leftLayers(order),
      ...leftTries(order.overlay, uid),
    ]),
    check("left-cgroups", "cgroups of worlds that are gone", () => leftCgroups(uid)),
  ];
}

/** Finds nothing, or says what it found, or says what it removed and what resisted. */
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

/** PID 1 of the world dies with its outer process, and everything inside with PID 1. */
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

/** Folders of tries that were killed: those of probes, and the doctor's own. */
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
 * cgroups of worlds and of tries, without any process in them or below, whose maker is gone. A broker that has no command
 * just now keeps such groups, and the folder that all brokers share stays for the next one.
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
    // Its broker has removed it meanwhile.
    return false;
  }
  const pid = TRY.exec(name)?.[1];
  return pid === undefined ? isOrphan(name, maker) : readProcess(Number(pid)) === undefined;
}

/** Groups that a world or a try has to itself; what lies in them goes with them. */
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
    // Gone meanwhile, or not ours to see.
    return [];
  }
}

function entriesOf(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    // Nobody has made it yet, or it is not ours to see: then nothing of ours is there.
    return [];
  }
}

function ancestors(path: string): readonly string[] {
  return path === "/" ? ["/"] : [path, ...ancestors(dirname(path))];
}
