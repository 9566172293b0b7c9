/** `GET /v1/diff/:span_id`: shows held changes with a patch, and states its bounds. */
import { isRefusal, type Refusal } from "../model/refusal.ts";
import type { DiffChange, DiffReply } from "../../schemas/generated/types.ts";
import type { HeldChange, Waiter } from "../../world/backend.ts";
import type { GroundNeeds } from "../policies/judge.ts";
import type { Surroundings } from "../worlds/world-spec.ts";
import { changePath } from "./change-path.ts";
import { chosenOf } from "./choose.ts";
import { unreadable } from "./denied-paths.ts";
import { anotherProject, type FoundChanges } from "./find-held.ts";
import { groundOfChanges, specOfChanges } from "./may-change.ts";
import { type PastNeeds, pastWords } from "./past.ts";
import { type Counts, PatchWriter } from "./patch-writer.ts";
import { unreadHeld } from "./unread.ts";

/** The parts of the broker used for showing changes. */
export type ShowNeeds = PastNeeds & GroundNeeds & { readonly around: Surroundings };

/** Further changes are only counted; callers reach them with `paths`. */
const MAX_LISTED = 10_000;

/** Shows all held changes, or those selected by `paths`. */
export async function showHeld(
  broker: ShowNeeds,
  found: FoundChanges,
  paths: readonly string[] | null,
  signal: AbortSignal,
  waiter: Waiter,
): Promise<DiffReply | Refusal> {
  const all = await listOf(found, signal, waiter);
  if (isRefusal(all)) return all;
  const chosen = chosenOf(all, paths);
  if (isRefusal(chosen)) return chosen;
  const ground = groundOfChanges(broker, found);
  if (isRefusal(ground)) return ground;
  const isHidden = unreadable(specOfChanges(broker, ground, "operator"));
  const sides = await found.store.sides(found.held);
  try {
    // The opened folder stays the same, even if another folder takes its name.
    if ((await sides.identity()) !== found.place.identity) return anotherProject(found.held.project);
    const writer = new PatchWriter(sides, isHidden, signal);
    return await replyOf(chosen.changes, writer, all.length === 0 ? pastWords(broker, found.span) : null);
  } finally {
    await sides.close();
  }
}

async function listOf(
  { store, held, span }: FoundChanges,
  signal: AbortSignal,
  waiter: Waiter,
): Promise<readonly HeldChange[] | Refusal> {
  try {
    return await store.list(held, signal, waiter);
  } catch (error) {
    const unread = unreadHeld(error, span.span_id);
    if (unread === undefined) throw error;
    return unread;
  }
}

/** `past`: why no change is held any more. */
async function replyOf(
  changes: readonly HeldChange[],
  writer: PatchWriter,
  past: string | null,
): Promise<DiffReply> {
  const sorted = [...changes].sort((one, other) => (one.path < other.path ? -1 : 1));
  const rows: DiffChange[] = [];
  for (const change of sorted.slice(0, MAX_LISTED)) rows.push(rowOf(change, await writer.add(change)));
  const isCut = changes.length > MAX_LISTED;
  const gaps = [
    ...(past === null ? [] : [`No changes are held: ${past}`]),
    ...(isCut ? [`${changes.length} paths changed; only the first ${MAX_LISTED} are listed`] : []),
    ...writer.gaps(),
  ];
  return {
    changes: rows,
    patch: writer.text(),
    truncated: isCut || writer.isShort(),
    summary: gaps.length === 0 ? null : gaps.join("; "),
  };
}

function rowOf({ path, kind, autorun }: HeldChange, counts: Counts | undefined): DiffChange {
  const { binary = null, added = null, removed = null } = counts ?? {};
  return { path: changePath(path), kind, autorun, binary, added, removed };
}
