/**
 * Hashes of the files that a command replaced or removed, as the command saw them. Touching a file, or restoring its content,
 * changes ctime or inode, but is no conflict while bytes and mode are the same.
 */
import { createHash } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { join } from "node:path";
import { Beneath } from "./beneath.ts";
import type { Held } from "../model/held.ts";
import { fieldsIn, writeFields } from "./held-journal.ts";
import { type Entry, FLAG, ROW, type Sight } from "./rows.ts";

/** File of pairs: path, SHA-256 of the content. */
const CONTENTS = "contents";

/** Bounds of reading per command: files beyond are compared by times alone. */
const MAX_FILE = 8 * 1024 * 1024;
const MAX_BYTES = 32 * 1024 * 1024;
const MAX_FILES = 1000;

/** Hashes by path. */
export type Contents = ReadonlyMap<string, string>;

/** Saves the hashes of the files below `entries`, once. Files changed since the mount are left out. */
export async function keepContents(held: Held, entries: ReadonlyMap<string, Entry>): Promise<void> {
  if ((await fieldsIn(join(held.layers, CONTENTS))) !== null) return;
  const fields: string[] = [];
  let left = MAX_BYTES;
  const project = await Beneath.open(held.project);
  try {
    if ((await project.identity()) !== held.identity) return;
    for (const { path, below, kind } of entries.values()) {
      if (fields.length === 2 * MAX_FILES) break;
      if (kind === null || !isPlain(below) || below.size > Math.min(left, MAX_FILE)) continue;
      if (below.ctime > held.mountedAt) continue;
      const hash = await hashOf(project, path, below);
      if (hash === undefined) continue;
      left -= below.size;
      fields.push(path, hash);
    }
  } finally {
    await project.close();
  }
  await writeFields(held.layers, CONTENTS, fields);
}

export async function readContents({ layers }: Held): Promise<Contents> {
  const fields = (await fieldsIn(join(layers, CONTENTS))) ?? [];
  const contents = new Map<string, string>();
  for (let at = 0; at + 1 < fields.length; at += 2) contents.set(fields[at] ?? "", fields[at + 1] ?? "");
  return contents;
}

/**
 * Returns the selected paths with the same bytes and mode as the command saw, whatever their times. Each file is read in the
 * state given by the scan; the native part compares with that scan again at the moment of the change.
 *
 * `seen`: the entries of the first scan.
 */
export async function unchangedContents(
  held: Held,
  entries: ReadonlyMap<string, Entry>,
  seen: ReadonlyMap<string, Entry>,
  chosen: ReadonlySet<string>,
): Promise<ReadonlySet<string>> {
  const contents = await readContents(held);
  const same = new Set<string>();
  if (contents.size === 0) return same;
  const project = await Beneath.open(held.project);
  try {
    if ((await project.identity()) !== held.identity) return same;
    for (const path of chosen) {
      const [now, then, wanted] = [entries.get(path), seen.get(path), contents.get(path)];
      if (wanted === undefined || now === undefined || then === undefined || !isPlain(now.below)) continue;
      if (now.below.ctime <= held.mountedAt && now.below.inode === then.below?.inode) continue;
      if (!hasSameAttributes(now, then)) continue;
      if ((await hashOf(project, path, now.below)) === wanted) same.add(path);
    }
  } finally {
    await project.close();
  }
  return same;
}

/** Excludes hard-linked files: an apply of another name is indistinguishable from an edit, so only times count. */
function isPlain(sight: Sight | null): sight is Sight {
  return sight?.type === ROW.file && sight.links === 1;
}

/**
 * The flag `attributes` only says that owner, mode or attributes differ from the upper layer's: if set in either scan, nobody can
 * tell whether the two states are equal.
 */
function hasSameAttributes(now: Entry, then: Entry): boolean {
  if (now.below?.mode !== then.below?.mode) return false;
  return (
    now.type === ROW.removed ||
    (now.type === ROW.file && !`${now.flags}${then.flags}`.includes(FLAG.attributes))
  );
}

/** Returns undefined if the file differs from `seen`, or changes while read. */
async function hashOf(project: Beneath, path: string, seen: Sight): Promise<string | undefined> {
  const bytes = await project.readAs(path, seen, MAX_FILE);
  // Yield after each file, so that the broker can answer commands.
  await turn();
  return bytes === undefined ? undefined : createHash("sha256").update(bytes).digest("hex");
}
