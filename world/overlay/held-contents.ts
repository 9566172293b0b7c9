/**
 * What the files held that a command replaced or removed, as it saw them. A file that is touched, or put back as it was, has
 * another ctime or inode than it had, and is no conflict while it holds the same bytes under the same mode.
 */
import { createHash } from "node:crypto";
import { setImmediate as turn } from "node:timers/promises";
import { join } from "node:path";
import { Beneath } from "./beneath.ts";
import type { Held } from "../model/held.ts";
import { fieldsIn, writeFields } from "./held-journal.ts";
import type { Entry, Sight } from "./held-rows.ts";

/** Pairs of a path and the SHA-256 of its content. */
const CONTENTS = "contents";

/** Bounds of what is read for one command: a file beyond them is known by its times alone. */
const MAX_FILE = 8 * 1024 * 1024;
const MAX_BYTES = 32 * 1024 * 1024;
const MAX_FILES = 1000;

/** Hashes by path. */
export type Contents = ReadonlyMap<string, string>;

/** Keeps the contents below the `entries`, if nobody did before. A file that changed since the mount is left out. */
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
 * Paths among the chosen that hold what the command saw, whatever their times say: the same bytes under the same mode, read while
 * the file was as the scan has it. Whoever applies compares it with that scan once more, at the moment of the change.
 *
 * `seen`: the entries of the first look.
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

/** A file with several names is known by its times: what an apply of another name did to them cannot be told from an edit. */
function isPlain(sight: Sight | null): sight is Sight {
  return sight?.type === "f" && sight.links === 1;
}

/** The flag says that owner, mode or attributes differ from the upper layer's, which stays as it is: then nobody can tell. */
function hasSameAttributes(now: Entry, then: Entry): boolean {
  if (now.below?.mode !== then.below?.mode) return false;
  return now.type === "w" || (now.type === "f" && !`${now.flags}${then.flags}`.includes("a"));
}

/** Undefined where the file is not, or does not stay, as it was seen. */
async function hashOf(project: Beneath, path: string, seen: Sight): Promise<string | undefined> {
  const bytes = await project.readAs(path, seen, MAX_FILE);
  // One file at a time: commands are answered between two.
  await turn();
  return bytes === undefined ? undefined : createHash("sha256").update(bytes).digest("hex");
}
