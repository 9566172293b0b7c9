/**
 * What nobody's apply writes: the names that the policy denies now, to the operator's apply too. A world would not have
 * let the command make them; a policy that came later must hold as well.
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

/** Why a byte path may not be written; undefined when it may. */
export type Denials = (path: string) => string | undefined;

type Row = {
  readonly list: string;
  readonly pattern: string;
  readonly cover: Cover;
  /** It denies what is there already, and changes in it. */
  readonly standing: boolean;
  /** It says nothing of the project's own git folder where changes of that are for the operator to apply. */
  readonly lifted: boolean;
};

type Rows = {
  readonly rows: readonly Row[];
  readonly speaks: (row: Row, place: string) => boolean;
};

/** Entries of removed folders that are looked through; more are denied where a pattern could reach them. */
const MAX_LOOKED_THROUGH = 500_000;
const TURN_EVERY = 2000;

/**
 * The denials of a policy for these changes; what a removed or replaced folder holds counts as written. `by`: agents and
 * `changes.auto_apply` bring no settings or hooks of a repository that is new either, which a plain command could make and which would be
 * judged there.
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
  // What takes the place of a folder could bring any of the names in it under another one.
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
    if (!covers(files.write, place)) return "fs.write does not hold it";
    const row = rows.find((one) => speaksOf(one, place) && (!one.standing || stands(one.cover, place)));
    return row === undefined ? undefined : `${row.list} holds '${row.pattern}'`;
  };
  const inside = new Map<string, string>();
  const runLater = [...held, ...files.denyWrite.filter((row) => isHeldRow(row, project))].map(coverOf);
  for (const change of changes) {
    const { path, kind } = change;
    const other =
      changedElsewhere(change, absolute(path), runLater) ??
      (kind === "link" ? leadsElsewhere(rows, absolute(path)) : undefined);
    if (other !== undefined) inside.set(path, other);
    if (other !== undefined || kind === "dir" || kind === "mode" || !isFolder(project, path)) continue;
    const isOwn = isHeld(absolute(path));
    const all = kind === "delete" || isOwn ? rows : replaced;
    // Whoever takes away the whole git folder takes more than its settings.
    const speaks = isOwn ? speaksOf : ({ cover }: Row, place: string) => cover.covers(place);
    const why = await deniedInside(project, path, { rows: all, speaks }, absolute);
    if (why !== undefined) inside.set(path, why);
  }
  const known = new Map<string, string | undefined>();
  return (path) => {
    // The engine asks once more for each.
    if (!known.has(path)) known.set(path, inside.get(path) ?? direct(path));
    return known.get(path);
  };
}

const LINK_MODE = 0o120000;

/**
 * Why a change could be changed again without anybody's looking: tools would run at a name that a list denies what a later command
 * writes under another name. A link to what is not there yet is denied to no command either.
 */
function changedElsewhere(
  { mode, links }: HeldChange,
  place: string,
  runLater: readonly Cover[],
): string | undefined {
  const isName = runLater.some((cover) => cover.covers(place));
  if ((mode & 0o170000) === LINK_MODE)
    return isName || runLater.some((cover) => cover.reachesBelow(place))
      ? "it is a link, and tools run later what stands there: commands could change what it leads to"
      : undefined;
  return isName && links > 1
    ? "it is a second name of another file, and tools run it later: commands could change it under that name"
    : undefined;
}

/** What no diff shows: the project may hold by now what the policy lets no command read. */
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
  // In doubt it is denied: what a `[…]` stands for is decided where a world is made.
  return patterns.map((pattern) => ({
    list,
    pattern,
    standing: seals?.standing === true,
    lifted: seals !== undefined && !pattern.endsWith(`/${PROFILE_FILE}`),
    cover: coverOf(pattern.replace(/(?<!\\)\[[^\]]*\]/g, "?")),
  }));
}

/** As in a world: tools would read denied names in whatever the link leads to. */
function leadsElsewhere(rows: readonly Row[], place: string): string | undefined {
  const row = rows.find(
    ({ list, standing, cover }) => list === "fs.deny_write" && !standing && cover.spellsFolder(place),
  );
  return row === undefined
    ? undefined
    : `it is a link in the place of a folder, and ${row.list} holds '${row.pattern}' in it`;
}

/** A folder goes with everything in it. */
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
      return `it holds '${absolute(next)}', which cannot be looked through (${entries}), and the policy could deny what is in it`;
    for (const entry of entries) {
      const path = join(next, entry.name);
      const place = absolute(path);
      const row = reaching.find((one) => speaks(one, place));
      if (row !== undefined) return `it holds '${place}', and ${row.list} holds '${row.pattern}'`;
      if (entry.isDirectory() && reaching.some(({ cover }) => cover.reachesBelow(place))) folders.push(path);
      seen += 1;
      if (seen > MAX_LOOKED_THROUGH)
        return `it holds more than ${MAX_LOOKED_THROUGH} files, and the policy could deny any of them`;
      if (seen % TURN_EVERY === 0) await turn();
    }
  }
  return undefined;
}

/** The errno where it cannot be looked into: the engine may well be able to, by its rights over the user's own files. */
function entriesOf(
  project: string,
  folder: string,
): readonly { name: string; isDirectory(): boolean }[] | string {
  try {
    return readdirSync(bytes(project, folder), { encoding: "latin1", withFileTypes: true });
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    // It went meanwhile: the engine calls that a conflict.
    return code === "ENOENT" || code === "ENOTDIR" ? [] : code;
  }
}

function isFolder(project: string, path: string): boolean {
  const kind = kindAt(bytes(project, path));
  // What cannot be looked at may be one, and its entries then say why.
  return kind === "folder" || kind === "unknown";
}

/** Whether what the pattern names is there already: what would be new in it is a change of it. */
function stands(cover: Cover, place: string): boolean {
  let named = place;
  while (named !== "/" && cover.covers(dirname(named))) named = dirname(named);
  return kindAt(named) !== "nothing";
}

/** A file where a folder was wanted is ENOTDIR, which `throwIfNoEntry` does not cover: there is nothing below a file. */
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
