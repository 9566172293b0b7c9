/** The listing of what a command changed that writes straight to its project. */
import type { FsDiff } from "../../schemas/generated/types.ts";
import { beyondBounds, MAX_FILES, MAX_FOLDERS, MAX_HASHED, NO_CHANGES } from "../fs-diff.ts";
import { isAutorun } from "../overlay/autorun.ts";
import { bytesOf, shownPath } from "../overlay/names.ts";
import { byPath, type HashedChange, treeHash } from "../overlay/tree-hash.ts";
import { compare, type DirectChange } from "./compare.ts";
import { digestsBeside, digestsHere } from "./content.ts";
import { readTouched } from "./touched.ts";
import { Turns } from "./turns.ts";

/** What was told of one command. */
export type Told = {
  /** Payloads of TOUCHED. */
  readonly payloads: readonly Buffer[];
  /** What keeps it from being all, in words. */
  readonly gaps: readonly string[];
};

/** More files than these are read by another process: starting one costs as much as reading some dozen here. */
const MAX_HERE = 100;

/** And so are larger ones, however few: whoever reads them here holds the broker up. */
const MAX_BYTES_HERE = 2 * 1024 * 1024;

/** Nothing is known of what a command changed; `why` says so to people. Never an empty diff instead. */
export function unknownDiff(why: string): FsDiff {
  return { ...NO_CHANGES, truncated: true, summary: `not measured: ${why}` };
}

export type Where = {
  readonly project: string;
  /** The `substrate-init` program. */
  readonly init: string;
};

/** Throws what `signal` is aborted with. */
export async function directDiff(where: Where, told: Told, signal: AbortSignal): Promise<FsDiff> {
  if (told.payloads.length === 0) return withGaps(NO_CHANGES, told.gaps);
  const root = bytesOf(where.project);
  const turns = new Turns(signal);
  const compared = await compare(root, await readTouched(told.payloads, turns), turns);
  const changes = compared.changes.toSorted(byPath);
  // A hash over a part would look like one over all: there is none when something is missing.
  const missing = [...new Set(compared.gaps), ...told.gaps];
  const { hash, gap } = missing.length > 0 ? NO_HASH : await hashOf(where, changes, signal);
  const files = changes.filter(({ kind }) => kind !== "dir");
  const folders = changes.filter(({ kind }) => kind === "dir");
  const listed = files.slice(0, MAX_FILES);
  return withGaps(
    {
      ...NO_CHANGES,
      writes: pathsOf(listed, "write"),
      mods: pathsOf(listed, "mod"),
      deletes: pathsOf(listed, "delete"),
      dirs: pathsOf(folders.slice(0, MAX_FOLDERS), "dir"),
      autorun: files
        .map(({ path }) => shownPath(path))
        .filter(isAutorun)
        .slice(0, MAX_FILES),
      tree_hash: hash,
    },
    [...beyondBounds(files.length, folders.length), ...gap, ...missing],
  );
}

function withGaps(diff: FsDiff, gaps: readonly string[]): FsDiff {
  return gaps.length === 0 ? diff : { ...diff, truncated: true, summary: gaps.join("; ") };
}

type Hash = { readonly hash: string | null; readonly gap: readonly string[] };

const NO_HASH: Hash = { hash: null, gap: [] };

async function hashOf(where: Where, changes: readonly DirectChange[], signal: AbortSignal): Promise<Hash> {
  const bytes = changes.reduce((sum, { now }) => sum + (now?.isFile() === true ? Number(now.size) : 0), 0);
  if (bytes > MAX_HASHED) return noHash(`the changes hold more than ${MAX_HASHED} bytes`);
  try {
    const beside = changes.length > MAX_HERE || bytes > MAX_BYTES_HERE;
    const digests = beside ? await digestsBeside(where, changes, signal) : digestsHere(where, changes);
    const unread = changes.filter((_change, at) => digests[at] === undefined);
    if (unread.length > 0)
      return noHash(
        `${unread.length} paths cannot be read, the first is '${shownPath(unread[0]?.path ?? "")}'`,
      );
    return { hash: treeHash(changes.map((change, at) => hashed(change, digests[at] ?? ""))), gap: [] };
  } catch (error) {
    signal.throwIfAborted();
    return noHash(error instanceof Error ? error.message : String(error));
  }
}

function hashed({ path, kind, now }: DirectChange, content: string): HashedChange {
  return { path, kind, mode: Number(now?.mode ?? 0), content };
}

function noHash(why: string): Hash {
  return { hash: null, gap: [`no tree hash: ${why}`] };
}

function pathsOf(changes: readonly DirectChange[], kind: DirectChange["kind"]): string[] {
  return changes.filter((change) => change.kind === kind).map(({ path }) => shownPath(path));
}
