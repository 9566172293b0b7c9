/**
 * What nobody's apply writes: the names that the policy denies now, to the operator's apply too. A world would not have
 * let the command make them; a policy that came later must hold as well.
 */
import { lstatSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { type Cover, coverOf, type HeldChange } from "../../world/backend.ts";
import { isWithin } from "../projects.ts";
import { covers, type SpecOfFiles } from "../world-spec.ts";

/** Why a byte path may not be written; undefined when it may. */
export type Denials = (path: string) => string | undefined;

type Row = {
  readonly list: string;
  readonly pattern: string;
  readonly cover: Cover;
  readonly standing: boolean;
};

/** Entries of removed folders that are looked through; more are denied where a pattern could reach them. */
const MAX_LOOKED_THROUGH = 500_000;
const TURN_EVERY = 2000;

/** The denials of a policy for these changes; what a removed or replaced folder holds counts as written. */
export async function denialsFor(spec: SpecOfFiles, changes: readonly HeldChange[]): Promise<Denials> {
  const { files, project } = spec;
  const rows = [
    ...rowsOf("fs.deny_write", files.denyWrite, false),
    ...rowsOf("fs.deny_read", files.denyRead, false),
    ...rowsOf("fs.deny_write", files.seal, true),
  ];
  const absolute = (path: string): string => join(project, Buffer.from(path, "latin1").toString("utf8"));
  const direct = (path: string): string | undefined => {
    const place = absolute(path);
    const sealed = spec.sealed.find((folder) => isWithin(place, folder));
    if (sealed !== undefined) return "it belongs to the running installation";
    if (!covers(files.write, place)) return "fs.write does not hold it";
    const row = rows.find(
      ({ cover, standing }) => cover.covers(place) && (!standing || stands(cover, place)),
    );
    return row === undefined ? undefined : `${row.list} holds '${row.pattern}'`;
  };
  const inside = new Map<string, string>();
  for (const { path, kind } of changes) {
    if (kind === "dir" || kind === "mode" || !isFolder(project, path)) continue;
    const why = await deniedInside(project, path, rows, absolute);
    if (why !== undefined) inside.set(path, why);
  }
  const known = new Map<string, string | undefined>();
  return (path) => {
    // The engine asks once more for each.
    if (!known.has(path)) known.set(path, inside.get(path) ?? direct(path));
    return known.get(path);
  };
}

/** What no diff shows: the project may hold by now what the policy lets no command read. */
export function unreadable({ files, project }: SpecOfFiles): (path: string) => boolean {
  const rows = rowsOf("fs.deny_read", files.denyRead, false);
  return (path) => {
    const place = join(project, Buffer.from(path, "latin1").toString("utf8"));
    return !covers(files.read, place) || rows.some(({ cover }) => cover.covers(place));
  };
}

function rowsOf(list: string, patterns: readonly string[], standing: boolean): readonly Row[] {
  // In doubt it is denied: what a `[…]` stands for is decided where a world is made.
  return patterns.map((pattern) => ({
    list,
    pattern,
    standing,
    cover: coverOf(pattern.replace(/(?<!\\)\[[^\]]*\]/g, "?")),
  }));
}

/** A folder goes with everything in it. */
async function deniedInside(
  project: string,
  folder: string,
  rows: readonly Row[],
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
      const row = reaching.find(({ cover }) => cover.covers(place));
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
