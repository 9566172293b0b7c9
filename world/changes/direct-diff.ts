/** Lists the changes of a command that writes directly to its project. */
import type { FsDiff } from "../../schemas/generated/types.ts";
import { MAX_FILES, MAX_HASHED, NO_CHANGES } from "../model/fs-diff.ts";
import { Listing } from "../overlay/listing.ts";
import { bytesOf, shownPath } from "../overlay/names.ts";
import { byPath, type HashedChange, treeHash } from "../overlay/tree-hash.ts";
import { compare, type DirectChange } from "./compare.ts";
import { bytesIn, digestsOf } from "./content.ts";
import { readTouched, type Touched } from "./touched.ts";
import { TimeSlices } from "./time-slices.ts";

/** The record of one command. */
export type Told = {
  /** Payloads of TOUCHED frames. */
  readonly payloads: readonly Buffer[];
  /** Reasons for missing changes, as text. */
  readonly gaps: readonly string[];
};

/** Returns the listing for unknown changes, never an empty listing; `why` is shown to people. */
export function unknownDiff(why: string): FsDiff {
  return { ...NO_CHANGES, truncated: true, summary: `not measured: ${why}` };
}

/** Lists the changes below the path `project`. Throws the signal's reason when aborted. */
export async function directDiff(project: string, told: Told, signal: AbortSignal): Promise<FsDiff> {
  if (told.payloads.length === 0) return withGaps(NO_CHANGES, told.gaps);
  const root = bytesOf(project);
  const turns = new TimeSlices(signal);
  const touched = await readTouched(told.payloads, turns);
  const compared = await compare(root, touched.project, turns);
  const outside = await compareOutside(touched.outside, turns);
  const changes = compared.changes.toSorted(byPath);
  // A hash of a part would look like a hash of the whole, so an incomplete listing has no hash.
  const missing = [...new Set(compared.gaps), ...told.gaps];
  const { hash, gap } = missing.length > 0 ? NO_HASH : await hashOf(root, changes, turns);
  const listing = new Listing();
  for (const { path, kind, now } of changes) listing.add(kind, path, now?.mode ?? 0);
  return {
    ...listing.diff([...gap, ...missing, ...outside.gaps]),
    outside: outside.paths.slice(0, MAX_FILES),
    tree_hash: hash,
  };
}

/** Returns absolute paths: new, changed and removed files, and new folders. */
async function compareOutside(
  touched: Touched,
  turns: TimeSlices,
): Promise<{ readonly paths: readonly string[]; readonly gaps: readonly string[] }> {
  if (touched.before.size === 0 && touched.moves.length === 0) return { paths: [], gaps: [] };
  const { changes, gaps } = await compare("", touched, turns);
  const paths = changes.map(({ path }) => shownPath(`/${path}`)).sort();
  const more = `${paths.length} paths outside the project changed; the first ${MAX_FILES} are listed`;
  return { paths, gaps: paths.length > MAX_FILES ? [...gaps, more] : gaps };
}

function withGaps(diff: FsDiff, gaps: readonly string[]): FsDiff {
  return gaps.length === 0 ? diff : { ...diff, truncated: true, summary: gaps.join("; ") };
}

type Hash = { readonly hash: string | null; readonly gap: readonly string[] };

const NO_HASH: Hash = { hash: null, gap: [] };

async function hashOf(root: string, changes: readonly DirectChange[], turns: TimeSlices): Promise<Hash> {
  if (bytesIn(changes) > MAX_HASHED) return noHash(`the changes hold more than ${MAX_HASHED} bytes`);
  const digests = await digestsOf(root, changes, turns);
  const unread = changes.filter((_change, at) => digests[at] === null);
  if (unread.length > 0)
    return noHash(
      `${unread.length} paths cannot be read, the first is '${shownPath(unread[0]?.path ?? "")}'`,
    );
  return { hash: treeHash(changes.map((change, at) => hashed(change, digests[at] ?? ""))), gap: [] };
}

function hashed({ path, kind, now }: DirectChange, content: string): HashedChange {
  return { path, kind, mode: now?.mode ?? 0, content };
}

function noHash(why: string): Hash {
  return { hash: null, gap: [`no tree hash: ${why}`] };
}
