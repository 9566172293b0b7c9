/**
 * Names that no apply may write, not even the operator's: everything denied by the current policy. A world with that policy would
 * have refused the command's write, so a later policy must bind too.
 */
import { lstatSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { type Cover, coverOf, type HeldChange } from "../../world/backend.ts";
import { isHeldRow } from "../policy/files/held-names.ts";
import { isWithin } from "../project/projects.ts";
import { PROFILE_FILE } from "../project/profiles.ts";
import { covers, type SpecOfFiles } from "../worlds/world-spec.ts";
import type { Asker } from "./change-spans.ts";
import { ledByGit } from "./git-led.ts";

/** Returns why a byte path may not be written; undefined for a permitted path. */
export type Denials = (path: string) => string | undefined;

type Row = {
  readonly list: string;
  readonly pattern: string;
  readonly cover: Cover;
  /** Whether the row denies only existing names and changes below them. */
  readonly standing: boolean;
  /** Whether the row skips the project's own git folder where its changes are left to the operator. */
  readonly lifted: boolean;
};

type Rows = {
  readonly rows: readonly Row[];
  readonly speaks: (row: Row, place: string) => boolean;
};

/** Bound on visited entries of removed folders; beyond, a change is denied if a pattern could match below. */
const MAX_LOOKED_THROUGH = 500_000;
const TURN_EVERY = 2000;

/**
 * Computes the policy's denials for these changes; the contents of a removed or replaced folder count as written. `by`: agents
 * and `changes.auto_apply` may not bring settings or hooks even of a new repository: a plain command could create such a
 * repository, but its settings and hooks would be judged.
 */
export async function denialsFor(
  spec: SpecOfFiles,
  changes: readonly HeldChange[],
  by: Asker,
): Promise<Denials> {
  const { files, project } = spec;
  const { held = [] } = files;
  const rows = [
    ...rowsOf("fs.deny_write", files.denyWrite),
    ...rowsOf("fs.deny_read", files.denyRead),
    ...rowsOf("fs.deny_write", files.seal, { standing: by === "operator" }),
  ];
  // A replacement of a folder could bring any denied name back under another name.
  const replaced = [...rows, ...rowsOf("fs.deny_write", held)];
  const heldCovers = held.map(coverOf);
  const gitFolder = join(project, ".git");
  const isHeld = (place: string): boolean => heldCovers.some((cover) => cover.covers(place));
  const isLifted = (place: string): boolean => isWithin(place, gitFolder) && isHeld(place);
  const speaksOf = ({ cover, lifted }: Row, place: string): boolean =>
    cover.covers(place) && !(lifted && isLifted(place));
  const absolute = (path: string): string => join(project, Buffer.from(path, "latin1").toString("utf8"));
  const direct = (path: string): string | undefined => {
    const place = absolute(path);
    const sealed = spec.sealed.find((folder) => isWithin(place, folder));
    if (sealed !== undefined) return "it belongs to the running installation";
    if (!covers(files.write, place)) return "fs.write does not cover it";
    const row = rows.find(
      (one) => speaksOf(one, place) && (!one.standing || stands(one.cover, place, bytes(project, path))),
    );
    return row === undefined ? undefined : `${row.list} has '${row.pattern}'`;
  };
  const inside = new Map<string, string>();
  const runLater = [...held, ...files.denyWrite.filter((row) => isHeldRow(row, project))].map(coverOf);
  const sealed = files.seal.map(coverOf);
  const gitDenials = by === "operator" ? undefined : ledByGit(project, changes);
  for (const change of changes) {
    const { path, kind } = change;
    const other =
      changedElsewhere(change, absolute(path), runLater, sealed) ??
      (kind === "link" ? leadsElsewhere(rows, absolute(path)) : undefined);
    if (other !== undefined) inside.set(path, other);
    if (other !== undefined || kind === "dir" || kind === "mode" || !isFolder(project, path)) continue;
    const isOwn = isHeld(absolute(path));
    const all = kind === "delete" || isOwn ? rows : replaced;
    // Removing a whole git folder removes more than its settings, so no row is lifted.
    const speaks = isOwn ? speaksOf : ({ cover }: Row, place: string) => cover.covers(place);
    const why = await deniedInside(project, path, { rows: all, speaks }, absolute);
    if (why !== undefined) inside.set(path, why);
  }
  const known = new Map<string, string | undefined>();
  return (path) => {
    // The engine asks again for each path.
    if (!known.has(path)) known.set(path, inside.get(path) ?? gitDenials?.(path) ?? direct(path));
    return known.get(path);
  };
}

const LINK_MODE = 0o120000;

/**
 * Refuses a change that commands could alter later without review: at a denied name, tools would run content written under
 * another name, through a link or a second hard link. A dangling link is refused too: no command is denied its target.
 */
function changedElsewhere(
  { mode, links }: HeldChange,
  place: string,
  runLater: readonly Cover[],
  sealed: readonly Cover[],
): string | undefined {
  // A link elsewhere above a sealed name is not refused, and none that only `**` leads to: every link could be above one.
  const isName = [...runLater, ...sealed].some((cover) => cover.covers(place));
  if ((mode & 0o170000) === LINK_MODE)
    return isName || runLater.some((cover) => cover.namesFolder(place))
      ? "it is a link in a place whose files tools run later, and commands could change its target"
      : undefined;
  return isName && links > 1
    ? "it is a hard link in a place whose files tools run later, and commands could change it under its other name"
    : undefined;
}

/** Tests whether a diff must hide a path: by now, the project may contain files that the policy hides from commands. */
export function unreadable({ files, project }: SpecOfFiles): (path: string) => boolean {
  const rows = rowsOf("fs.deny_read", files.denyRead);
  return (path) => {
    const place = join(project, Buffer.from(path, "latin1").toString("utf8"));
    return !covers(files.read, place) || rows.some(({ cover }) => cover.covers(place));
  };
}

function rowsOf(
  list: string,
  patterns: readonly string[],
  seals?: { readonly standing: boolean },
): readonly Row[] {
  // Treat `[…]` as any character, so that doubtful names are denied: a world decides its meaning only when it is made.
  return patterns.map((pattern) => ({
    list,
    pattern,
    standing: seals?.standing === true,
    lifted: seals !== undefined && !pattern.endsWith(`/${PROFILE_FILE}`),
    cover: coverOf(pattern.replace(/(?<!\\)\[[^\]]*\]/g, "?")),
  }));
}

/** Refuses a link in the place of a folder, as in a world: tools would read denied names in the link's target. */
function leadsElsewhere(rows: readonly Row[], place: string): string | undefined {
  const row = rows.find(
    ({ list, standing, cover }) => list === "fs.deny_write" && !standing && cover.namesFolder(place),
  );
  return row === undefined
    ? undefined
    : `it is a link in place of a folder, and ${row.list} has '${row.pattern}' in that folder`;
}

/** Finds a denied name in a folder: a removed folder takes all its contents along. */
async function deniedInside(
  project: string,
  folder: string,
  { rows, speaks }: Rows,
  absolute: (path: string) => string,
): Promise<string | undefined> {
  const reaching = rows.filter(({ cover }) => cover.reachesBelow(absolute(folder)));
  let seen = 0;
  const folders = reaching.length === 0 ? [] : [folder];
  for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
    const entries = entriesOf(project, next);
    if (typeof entries === "string")
      return `it contains '${absolute(next)}', which cannot be read (${entries}) and may contain denied names`;
    for (const entry of entries) {
      const path = join(next, entry.name);
      const place = absolute(path);
      const row = reaching.find((one) => speaks(one, place));
      if (row !== undefined) return `it contains '${place}', and ${row.list} has '${row.pattern}'`;
      if (entry.isDirectory() && reaching.some(({ cover }) => cover.reachesBelow(place))) folders.push(path);
      seen += 1;
      if (seen > MAX_LOOKED_THROUGH)
        return `it contains more than ${MAX_LOOKED_THROUGH} files, too many to check against the policy`;
      if (seen % TURN_EVERY === 0) await turn();
    }
  }
  return undefined;
}

/** Lists a folder, or returns the errno: the engine may be able to read the folder, by its rights over the user's own files. */
function entriesOf(
  project: string,
  folder: string,
): readonly { name: string; isDirectory(): boolean }[] | string {
  try {
    return readdirSync(bytes(project, folder), { encoding: "latin1", withFileTypes: true });
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    // Removed meanwhile: the engine reports a conflict.
    return code === "ENOENT" || code === "ENOTDIR" ? [] : code;
  }
}

function isFolder(project: string, path: string): boolean {
  const kind = kindAt(bytes(project, path));
  // An unreadable path may be a folder; listing its entries then gives the reason.
  return kind === "folder" || kind === "unknown";
}

/**
 * Whether the name covered by the pattern exists: a new file below then changes an existing name. `file` has the bytes of `place`, which
 * are lost in a name that is no UTF-8.
 */
function stands(cover: Cover, place: string, file: Buffer): boolean {
  let named = place;
  let at = file;
  while (named !== "/" && cover.covers(dirname(named))) {
    named = dirname(named);
    at = at.subarray(0, at.lastIndexOf("/"));
  }
  return kindAt(at) !== "nothing";
}

/** Returns the kind of a path. `throwIfNoEntry` does not cover ENOTDIR, so catch it: a path below a file does not exist. */
function kindAt(path: string | Buffer): "folder" | "other" | "nothing" | "unknown" {
  try {
    return lstatSync(path).isDirectory() ? "folder" : "other";
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" || code === "ENOTDIR" ? "nothing" : "unknown";
  }
}

function bytes(project: string, path: string): Buffer {
  return Buffer.concat([Buffer.from(`${project}/`), Buffer.from(path, "latin1")]);
}
