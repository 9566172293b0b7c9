/** Makes the mount points in a world's own home. */
import { closeSync, constants, fstatSync, mkdirSync, openSync, type Stats } from "node:fs";
import { WorldUnavailable } from "../model/unavailable.ts";
import type { OwnHome } from "../model/world.ts";
import type { HomePlace } from "../plan/own-home.ts";
import { isScarce, SCARCE_HINT } from "./scarce.ts";

/** `O_PATH`, missing in Node (asm-generic/fcntl.h). With `O_NOFOLLOW`, a link is opened itself. */
const PLACE = 0o10000000 | constants.O_NOFOLLOW;

/** A name in an opened folder; `at`: the whole path, for people. */
type Name = { readonly folder: number; readonly name: string; readonly at: string };

/**
 * Makes missing mount points, name by name from the opened folder: commands of another world may write in the same home
 * meanwhile, and no link of theirs may be followed. Throws `WorldUnavailable` when something else has a name.
 */
export function prepareHomePlaces(home: OwnHome, places: readonly HomePlace[]): void {
  try {
    const top = openHome(home);
    try {
      for (const { path, kind } of places) prepare(top, path.slice(home.path.length + 1), kind, home.folder);
    } finally {
      closeSync(top);
    }
  } catch (error) {
    if (error instanceof WorldUnavailable) throw error;
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    if (isScarce(code))
      throw new WorldUnavailable(`Cannot look at the home '${home.folder}': ${code}`, SCARCE_HINT);
    throw unusable(home.folder, `the kernel reports ${code}`, error);
  }
}

function openHome({ folder, identity }: OwnHome): number {
  const top = walk(openSync("/", PLACE), folder.slice(1).split("/"), (parent, name) =>
    openFolder({ folder: parent, name, at: folder }),
  );
  const { dev, ino } = fstatSync(top, { bigint: true });
  if (`${dev}:${ino}` !== identity) {
    closeSync(top);
    throw unusable(folder, "it was replaced meanwhile");
  }
  return top;
}

function prepare(top: number, path: string, kind: HomePlace["kind"], home: string): void {
  const names = path.split("/");
  const last = names.pop() ?? "";
  const at = `${home}/${path}`;
  const folder = walk(openSync(inside(top, "."), PLACE), names, (parent, name) =>
    makeFolder({ folder: parent, name, at }),
  );
  try {
    const place = { folder, name: last, at };
    closeSync(kind === "folder" ? makeFolder(place) : makeFile(place));
  } finally {
    closeSync(folder);
  }
}

/** Opens folder by folder, and closes each but the last. */
function walk(
  start: number,
  names: readonly string[],
  open: (folder: number, name: string) => number,
): number {
  let folder = start;
  for (const name of names) {
    try {
      const next = open(folder, name);
      closeSync(folder);
      folder = next;
    } catch (error) {
      closeSync(folder);
      throw error;
    }
  }
  return folder;
}

function makeFolder(place: Name): number {
  unlessThere(() => mkdirSync(inside(place.folder, place.name), 0o700));
  return openFolder(place);
}

function openFolder(place: Name): number {
  return openAs(place, "a folder", (status) => status.isDirectory());
}

function makeFile(place: Name): number {
  const { O_CREAT, O_EXCL, O_NOFOLLOW } = constants;
  const path = inside(place.folder, place.name);
  unlessThere(() => closeSync(openSync(path, O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)));
  return openAs(place, "a file", (status) => status.isFile());
}

function openAs({ folder, name, at }: Name, what: string, fits: (status: Stats) => boolean): number {
  const opened = openSync(inside(folder, name), PLACE);
  if (fits(fstatSync(opened))) return opened;
  closeSync(opened);
  throw unusable(at, `'${name}' on the way there is not ${what}`);
}

function unlessThere(make: () => void): void {
  try {
    make();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

function inside(folder: number, name: string): string {
  return `/proc/self/fd/${folder}/${name}`;
}

function unusable(path: string, why: string, cause?: unknown): WorldUnavailable {
  return new WorldUnavailable(
    `Cannot use '${path}' in a home of its own: ${why}`,
    "Look at that path, and move away what has its name; then run the command again",
    { cause },
  );
}
