import { dirname } from "node:path";
import type { PolicyDocument } from "../../schemas/generated/types.ts";
import { fileLists } from "../policy/files/file-lists.ts";
import type { Addition } from "./additions.ts";
import { notProposedBecause } from "./not-proposed.ts";
import type { ObservedWrite } from "./observations.ts";
import { deniedBy, type Folders, isCovered, isWithin } from "../policy/files/path-denials.ts";
import { type Seen, seenAlso } from "./observations.ts";

/** The kind of a path on the host now. */
export type PathKind = "file" | "folder" | "other" | "missing";

/** A write left out of the proposal, and why. */
export type StoppedWrite = {
  readonly path: string;
  readonly seen: Seen;
  readonly kind: "denied" | "unsayable" | "held_back";
  readonly why: string;
};

export type JudgedWrites = {
  readonly additions: readonly Addition[];
  readonly stopped: readonly StoppedWrite[];
  /** Number of paths that the policy allows by now. */
  readonly allowed: number;
};

/** Number of files written directly in a folder from which the folder is proposed. */
export const ENOUGH_FILES = 5;

/** Finds the scope for each write outside the policy. A folder replaces its files after enough writes, but never its parent. Pure. */
export function judgeWrites(
  document: PolicyDocument,
  writes: readonly ObservedWrite[],
  whereOf: (cwd: string) => Folders,
  kindOf: (path: string) => PathKind,
): JudgedWrites {
  const { write, scratch } = fileLists(document);
  // Writes to `scratch` stay in the world on purpose.
  const open = writes.filter(({ path, cwd }) => !isCovered(path, [...write, ...scratch], whereOf(cwd)));
  const judged = open.map((one) => ({ one, stop: stopOf(document, one, whereOf(one.cwd)) }));
  const learnable = judged.flatMap(({ one, stop }) => (stop === undefined ? [one] : []));
  const { additions, stopped } = scopesFor(learnable, whereOf, kindOf);
  return {
    additions,
    stopped: [...judged.flatMap(({ stop }) => stop ?? []), ...stopped],
    allowed: writes.length - open.length,
  };
}

function stopOf(
  document: PolicyDocument,
  { path, seen }: ObservedWrite,
  folders: Folders,
): StoppedWrite | undefined {
  const { deny_write, deny_read } = fileLists(document);
  const write = deniedBy(path, deny_write, folders);
  if (write !== undefined) return { path, seen, kind: "denied", why: `'${write}' in fs.deny_write` };
  const read = deniedBy(path, deny_read, folders);
  if (read !== undefined) return { path, seen, kind: "denied", why: `'${read}' in fs.deny_read` };
  const reason = notProposedBecause(path, folders.home);
  if (reason !== undefined) return { path, seen, kind: "held_back", why: reason };
  if (/[*?\\]|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(path))
    return { path, seen, kind: "unsayable", why: "its name contains characters that fs.write cannot name" };
  return undefined;
}

type Scopes = { readonly additions: readonly Addition[]; readonly stopped: readonly StoppedWrite[] };

function scopesFor(
  writes: readonly ObservedWrite[],
  whereOf: (cwd: string) => Folders,
  kindOf: (path: string) => PathKind,
): Scopes {
  const parts = [...byFolder(writes)].map(([folder, files]): Scopes => {
    const folders = whereOf(files[0]?.cwd ?? "/");
    const isOne =
      files.length >= ENOUGH_FILES && mayStandForItsFiles(folder, folders) && kindOf(folder) === "folder";
    if (!isOne) return joined(files.map((file) => scopeOfFile(file, folders, kindOf)));
    const seen = files.map((file) => file.seen).reduce((one, other) => seenAlso(one, other));
    return {
      additions: [{ list: "fs.write", value: scopeText(`${folder}/**`, folders), seen }],
      stopped: [],
    };
  });
  return joined(parts);
}

/** A scope for a file opens only an existing file: no file is created on the host for a scope. */
function scopeOfFile(
  { path, seen }: ObservedWrite,
  folders: Folders,
  kindOf: (path: string) => PathKind,
): Scopes {
  const kind = kindOf(path);
  if (kind === "file")
    return { additions: [{ list: "fs.write", value: scopeText(path, folders), seen }], stopped: [] };
  const why =
    kind === "missing"
      ? "it does not exist on the host, and an entry for one file needs an existing file: make the file, then learn again"
      : "it is not a regular file on the host";
  return { additions: [], stopped: [{ path, seen, kind: "unsayable", why }] };
}

function byFolder(writes: readonly ObservedWrite[]): ReadonlyMap<string, readonly ObservedWrite[]> {
  const groups = new Map<string, ObservedWrite[]>();
  for (const write of writes) {
    const folder = dirname(write.path);
    groups.set(folder, [...(groups.get(folder) ?? []), write]);
  }
  return groups;
}

/** Excludes folders around a home, and folders directly below `/`. */
function mayStandForItsFiles(folder: string, { home }: Folders): boolean {
  return !isWithin(home, folder) && folder.split("/").length > 2;
}

function scopeText(path: string, { home }: Folders): string {
  return isWithin(path, home) ? `$HOME${path.slice(home.length)}` : path;
}

function joined(parts: readonly Scopes[]): Scopes {
  return {
    additions: parts.flatMap(({ additions }) => additions),
    stopped: parts.flatMap(({ stopped }) => stopped),
  };
}
