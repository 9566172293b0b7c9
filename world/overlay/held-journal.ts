/**
 * History of a span's held changes in `layers`: a folder `applies/N` per apply or undo, with its plan, the replaced files (`old`)
 * and the resulting state (`record`); and the file `discarded`. The native part writes `placed`, `record` and `finished` (order:
 * world/native/changes/held_change.c).
 */
import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fieldsOf } from "./native-session.ts";
import { bytesOf } from "./names.ts";
import { parentOf, type Sight, sightOf } from "./rows.ts";

/** Letters of the plan on disk (world/native/changes/held_plan.h). */
const KINDS = {
  put: "p",
  /** A part of the preceding put. */
  into: "i",
  /** Take away. */
  take: "t",
  attributes: "a",
} as const;
const HOWS = {
  /** With contents; all attributes. */
  whole: "w",
  /** A folder without its contents. */
  alone: "a",
  /** Attributes: times only. */
  times: "t",
  /** Attributes: none, only the ctime is recorded. */
  nothing: "n",
} as const;

export type Step = {
  readonly kind: keyof typeof KINDS;
  readonly how: keyof typeof HOWS;
  readonly path: string;
  /** Relative to `layers`. */
  readonly source: string;
  /** The text of a {@link Sight}; "" for a missing file. */
  readonly expect: string;
};

/** `back`: neither, but files were moved and restored, which set their ctimes. */
export type Verb = "apply" | "undo" | "back";

/** A completed apply or undo. */
export type Past = {
  readonly folder: string;
  readonly verb: Verb;
  readonly paths: readonly string[];
  readonly steps: readonly Step[];
};

export type Journal = {
  readonly past: readonly Past[];
  /** Changes now in the project: path, and folder of the apply. */
  readonly applied: ReadonlyMap<string, string>;
  readonly discarded: ReadonlySet<string>;
  /** Changes that were in the project and were undone. */
  readonly undone: ReadonlySet<string>;
  /** State in which the last apply or undo left each path. */
  readonly left: ReadonlyMap<string, Sight>;
};

const HEADER = 6;
const ROW = 4;
const APPLIES = "applies";
const DISCARDED = "discarded";
/** Stands among the discarded paths for all changes: too many to be listed. */
export const ALL = "";

export async function readJournal(layers: string): Promise<Journal> {
  const folders = (await namesOf(join(layers, APPLIES))).filter((name) => /^\d+$/.test(name)).sort();
  const past: Past[] = [];
  const applied = new Map<string, string>();
  const undone = new Set<string>();
  const left = new Map<string, Sight>();
  for (const name of folders) {
    const folder = `${APPLIES}/${name}`;
    const record = await fieldsIn(join(layers, folder, "record"));
    // Taken back or unfinished: does not count.
    if (record === null) continue;
    const change = await readPast(layers, folder);
    past.push(change);
    if (change.verb === "apply") for (const path of change.paths) applied.set(path, folder);
    if (change.verb === "undo") for (const path of change.paths) if (applied.delete(path)) undone.add(path);
    takeRecord(left, change, record);
  }
  const discarded = new Set(await fieldsIn(join(layers, DISCARDED)));
  return { past, applied, discarded, undone, left };
}

async function readPast(layers: string, folder: string): Promise<Past> {
  const [verb, , ...paths] = (await fieldsIn(join(layers, folder, "changes"))) ?? [];
  const rows = ((await fieldsIn(join(layers, folder, "plan"))) ?? []).slice(HEADER);
  const steps: Step[] = [];
  for (let at = 0; at + ROW <= rows.length; at += ROW) {
    const [word = "", path = "", source = "", expect = ""] = rows.slice(at, at + ROW);
    steps.push({ kind: wordFor(KINDS, word[0]), how: wordFor(HOWS, word[1]), path, source, expect });
  }
  return { folder, verb: verb as Verb, paths, steps };
}

function wordFor<W extends string>(letters: Readonly<Record<W, string>>, letter: string | undefined): W {
  const word = (Object.keys(letters) as W[]).find((each) => letters[each] === letter);
  if (word === undefined) throw new Error(`a plan of held changes has the unknown step '${letter}'`);
  return word;
}

function takeRecord(left: Map<string, Sight>, { verb, steps }: Past, record: readonly string[]): void {
  const gone = new Set(
    (verb === "back" ? [] : steps)
      .filter(({ kind }) => kind === "take" || kind === "put")
      .map(({ path }) => path),
  );
  for (const path of left.keys()) if (isWithinAny(path, gone)) left.delete(path);
  const latest = new Map<bigint, Sight>();
  for (let at = 0; at + 1 < record.length; at += 2) {
    const sight = sightOf(record[at + 1] ?? "");
    if (sight === null) continue;
    left.set(record[at] ?? "", sight);
    const other = latest.get(sight.inode);
    if (other === undefined || other.ctime < sight.ctime) latest.set(sight.inode, sight);
  }
  // A new hard link changes the ctime of the file, so every name shows the latest.
  for (const [path, sight] of left) {
    const last = latest.get(sight.inode);
    if (last !== undefined && last.ctime > sight.ctime) left.set(path, { ...sight, ctime: last.ctime });
  }
}

function isWithinAny(path: string, roots: ReadonlySet<string>): boolean {
  for (let at = path; at !== ""; at = parentOf(at)) if (roots.has(at)) return true;
  return false;
}

export type Order = {
  readonly layers: string;
  readonly project: string;
  /** The project folder; only type and inode count. */
  readonly seen: Sight;
  readonly verb: Verb;
  /** Name of the project's lock file. */
  readonly lock: string;
  readonly stage: string;
  readonly paths: readonly string[];
  readonly steps: readonly Step[];
};

/** Writes the plan of an apply durably; returns its folder. */
export async function writeOrder(order: Order): Promise<string> {
  const applies = join(order.layers, APPLIES);
  await mkdir(applies, { recursive: true, mode: 0o700 });
  const last = Number(
    (await namesOf(applies))
      .filter((name) => /^\d+$/.test(name))
      .sort()
      .at(-1) ?? 0,
  );
  const folder = join(applies, String(last + 1).padStart(6, "0"));
  await mkdir(folder, { mode: 0o700 });
  await writeFields(folder, "changes", [order.verb, order.lock, ...order.paths]);
  const header = [
    "substrate-held 1",
    bytesOf(order.project),
    order.seen.text,
    bytesOf(order.layers),
    order.stage,
  ];
  const rows = order.steps.flatMap(({ kind, how, path, source, expect }) => [
    KINDS[kind] + HOWS[how],
    path,
    source,
    expect,
  ]);
  await writeFields(folder, "plan", [...header, order.verb === "apply" ? "keep" : "drop", ...rows]);
  await syncFolder(applies);
  return folder;
}

/** Reads the verb of an apply folder. */
export async function verbOf(folder: string): Promise<Verb | null> {
  return ((await fieldsIn(join(folder, "changes")))?.[0] ?? null) as Verb | null;
}

/** Removes an apply taken back; keeps only the new ctimes of restored files. */
export async function dropOrder(folder: string): Promise<void> {
  const restored = await fieldsIn(join(folder, "restored"));
  if (restored === null) return await rm(folder, { recursive: true, force: true });
  const [, lock = ""] = (await fieldsIn(join(folder, "changes"))) ?? [];
  await writeFields(folder, "finished", []);
  await writeFields(folder, "changes", ["back", lock]);
  await writeFields(folder, "record", restored);
}

/** Renames an apply that could not be taken back fully, so that people find the saved files; the journal ignores the folder. */
export async function keepOrder(folder: string): Promise<string> {
  const kept = join(folder, "..", `kept-${folder.slice(folder.lastIndexOf("/") + 1)}-${Date.now()}`);
  await rename(folder, kept);
  return kept;
}

export async function writeDiscarded(layers: string, paths: ReadonlySet<string>): Promise<void> {
  await writeFields(layers, DISCARDED, [...paths]);
}

/** Lists the unfinished applies and undos of one span, each with its lock. */
export async function unfinished(layers: string): Promise<readonly { folder: string; lock: string }[]> {
  const found = [];
  for (const name of (await namesOf(join(layers, APPLIES))).sort()) {
    const folder = join(layers, APPLIES, name);
    if (!/^\d+$/.test(name) || (await namesOf(folder)).includes("finished")) continue;
    const changes = await fieldsIn(join(folder, "changes"));
    found.push({ folder, lock: changes?.[1] ?? "unknown" });
  }
  return found;
}

export async function writeFields(folder: string, name: string, fields: readonly string[]): Promise<void> {
  await writeBytes(folder, name, Buffer.from(fields.map((field) => `${field}\0`).join(""), "latin1"));
}

/** Writes a file atomically and durably. */
export async function writeBytes(folder: string, name: string, bytes: Buffer): Promise<void> {
  // Random, because two concurrent first scans of the same layers both write this file.
  const draft = join(folder, `${name}.${randomBytes(4).toString("hex")}.draft`);
  const file = await open(draft, "w", 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(draft, join(folder, name));
  await syncFolder(folder);
}

export async function fieldsIn(path: string): Promise<string[] | null> {
  const bytes = await bytesIn(path);
  return bytes === null ? null : fieldsOf(bytes);
}

export async function bytesIn(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

async function syncFolder(folder: string): Promise<void> {
  const file = await open(folder, "r");
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

async function namesOf(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}
