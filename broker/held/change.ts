/** Applies, discards and undoes held changes, step by step. The policy is checked here; the engine knows no policies. */
import { isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import type { ChangesReply, FsDiff } from "../../schemas/generated/types.ts";
import {
  type ApplyEnding,
  type HeldChange,
  type KeyedMutex,
  Listing,
  type PathReason,
  timeLimit,
} from "../../world/backend.ts";
import type { Ground, GroundNeeds } from "../policies/judge.ts";
import { lookExactlyAt } from "../model/host-paths.ts";
import type { Remotes } from "../git/remotes.ts";
import type { DirtyFiles } from "../project-files/dirty-files.ts";
import type { SpanRecord, Trace } from "../spans/trace.ts";
import type { Surroundings } from "../worlds/world-spec.ts";
import { changePath } from "./change-path.ts";
import {
  type Action,
  type Asker,
  changeDenied,
  changeDone,
  changeRefused,
  changeStarted,
} from "./change-spans.ts";
import { cannotRecord, listed, notAllowed, nothingDone, onlyOperator, refusalOf } from "./change-refusals.ts";
import { chosenOf } from "./choose.ts";
import { type Denials, denialsFor } from "./denied-paths.ts";
import { findHeld, type FoundChanges, type HeldNeeds } from "./find-held.ts";
import { HalfMoves } from "./half-moves.ts";
import { groundOfChanges, notByAgents, notUndoneByAgents, specOfChanges } from "./may-change.ts";
import { doneWords, pastWords } from "./past.ts";
import { unreadHeld } from "./unread.ts";
import { applyUnrefused, applyWhole } from "./skip-refused.ts";

/** The parts of the broker used for changing held changes. */
export type ChangeNeeds = HeldNeeds &
  GroundNeeds & {
    readonly around: Surroundings;
    readonly dirtyFiles: Pick<DirtyFiles, "began" | "ended">;
    readonly heldMutex: KeyedMutex;
    readonly remotes: Pick<Remotes, "leaveToCommands">;
    readonly trace: Trace;
  };

/** `paths`: byte paths; null for all. */
export type ChangeOrder = {
  readonly span: SpanRecord;
  readonly action: Action;
  readonly by: Asker;
  readonly paths: readonly string[] | null;
  /** Only of an apply: leaves refused changes held, and applies the others. */
  readonly skipRefused?: boolean;
};

/** Enough for 30,000 files on a slow disk. A change continues after its caller has disconnected. */
const PATIENCE_MS = 600_000;

const GIT_SETTINGS = ".git/config";

/** Bytes of paths checked against the policy's lists before yielding to other calls: some 1,000 paths. */
const BYTES_A_TURN = 64 * 1024;

/** Serves an API call: finds the changes, checks permission, then waits for the project's lock. */
export async function changeHeld(broker: ChangeNeeds, order: ChangeOrder): Promise<ChangesReply | Refusal> {
  const found = await findFor(broker, order);
  if (isRefusal(found)) return found;
  const denied = order.by === "agent" ? deniedToAgents(broker, order, found) : undefined;
  if (denied !== undefined) return recordDenial(broker, order, denied);
  return await changeFound(broker, order, found);
}

function findFor(broker: ChangeNeeds, { span, action }: ChangeOrder): Promise<FoundChanges | Refusal> {
  return findHeld(broker, span, action === "discard" ? "layers" : "project");
}

function deniedToAgents(
  broker: ChangeNeeds,
  { span: { span_id: id }, action }: ChangeOrder,
  found: FoundChanges,
): Refusal | undefined {
  const ground = groundOfChanges(broker, found);
  if (isRefusal(ground)) return ground;
  return notByAgents(ground, id) ?? (action === "undo" ? notUndoneByAgents(broker, ground, id) : undefined);
}

/** Carries out a permitted change under the project's lock. */
export async function changeFound(
  broker: ChangeNeeds,
  order: ChangeOrder,
  found: FoundChanges,
): Promise<ChangesReply | Refusal> {
  const { project } = found.held;
  return await broker.heldMutex.run(project, async () => {
    broker.dirtyFiles.began(project);
    try {
      return await inTurn(broker, order, found);
    } finally {
      broker.dirtyFiles.ended(project);
    }
  });
}

async function inTurn(
  broker: ChangeNeeds,
  order: ChangeOrder,
  found: FoundChanges,
): Promise<ChangesReply | Refusal> {
  const signal = timeLimit(PATIENCE_MS);
  const listed = await listInTurn(broker, order, found, signal);
  if (listed !== TOO_MANY && isRefusal(listed)) return listed;
  const before = listed === TOO_MANY ? [] : listed;
  const unfit =
    order.action === "undo" || listed === TOO_MANY ? undefined : nothingToDo(broker, order, before);
  if (unfit !== undefined) return unfit;
  const denials = order.action === "apply" ? await denialsOf(broker, order, found, before) : undefined;
  if (denials !== undefined && isRefusal(denials)) return recordDenial(broker, order, denials);
  if (denials?.refusal !== undefined) {
    const error = recordDenial(broker, order, denials.refusal);
    if (denials.isRest !== true) return error;
  }
  if (order.action === "apply") noteRepository(broker, found.held.project, before);
  const started = changeStarted(order.span, order.action, order.by, order.paths);
  const began = performance.now();
  try {
    await broker.trace.start(started);
  } catch (error) {
    broker.trace.closeFailed(started, error);
    return cannotRecord(error);
  }
  try {
    const { ending, skipped } = await carryOut(order, found, { before, ...denials }, signal);
    return await close(broker, order, found, { ending, skipped, before, started, began }, signal);
  } catch (error) {
    broker.trace.closeFailed(started, error);
    throw error;
  }
}

/** Whoever applies a whole repository has not read its remotes; a change of an existing one is shown by name. */
function noteRepository({ remotes }: ChangeNeeds, project: string, changes: readonly HeldChange[]): void {
  const file = join(project, GIT_SETTINGS);
  if (!changes.some(({ path }) => path === GIT_SETTINGS)) return;
  if (lookExactlyAt(file) === undefined) remotes.leaveToCommands(file);
}

/** Changes that cannot be listed, and can still be discarded. */
const TOO_MANY = "too many";

/**
 * Lists the changes. While waiting for the lock, the project may have been replaced or removed: then the current refusal is
 * returned.
 */
async function listInTurn(
  broker: ChangeNeeds,
  order: ChangeOrder,
  { store, held }: FoundChanges,
  signal: AbortSignal,
): Promise<readonly HeldChange[] | typeof TOO_MANY | Refusal> {
  try {
    return await store.list(held, signal, order.by === "operator" ? "operator" : "broker");
  } catch (error) {
    const unread = unreadHeld(error, order.span.span_id);
    if (unread?.code === "too_large" && order.action === "discard" && order.paths === null) return TOO_MANY;
    if (unread !== undefined) return unread;
    const again = await findFor(broker, order);
    if (isRefusal(again)) return again;
    throw error;
  }
}

function nothingToDo(
  broker: ChangeNeeds,
  { span, paths }: ChangeOrder,
  all: readonly HeldChange[],
): Refusal | undefined {
  if (all.length === 0)
    return refusal(
      "not_found",
      `Span ${quoted(span.span_id)} holds no changes: ${pastWords(broker, span)}`,
      "Nothing is left to do; 'substrate undo' reverts applied changes",
    );
  const chosen = chosenOf(all, paths);
  return isRefusal(chosen) ? chosen : undefined;
}

/** What the policy denies: by path, and of the chosen changes. */
type Denied = {
  readonly denials: Denials;
  readonly denied: readonly PathReason[];
  /** Present when something is denied; then `isRest` tells whether the other changes are applied. */
  readonly refusal?: Refusal;
  readonly isRest?: boolean;
};

/** Finds the policy's denials before any change, so that the refusal can name the rule. */
async function denialsOf(
  broker: ChangeNeeds,
  order: ChangeOrder,
  found: FoundChanges,
  all: readonly HeldChange[],
): Promise<Denied | Refusal> {
  const { by, paths, skipRefused } = order;
  const ground = groundOfChanges(broker, found);
  if (isRefusal(ground)) return ground;
  const chosen = chosenOf(all, paths);
  if (isRefusal(chosen)) return chosen;
  const denials = await denialsFor(specOfChanges(broker, ground, by), chosen.changes, by);
  const denied = await deniedAmong(chosen.changes, denials);
  if (denied.length === 0) return { denials, denied };
  const isRest = skipRefused === true && denied.length < chosen.changes.length;
  const isTheirs = by !== "operator" && (await isForOperator(broker, ground, chosen.changes, denied));
  const { id } = ground.effective;
  return {
    ...{ denials, denied, isRest },
    refusal: isTheirs ? onlyOperator(order.span, id, denied, isRest) : notAllowed(id, denied, isRest),
  };
}

/** Whether only the caller's role forbids these changes: the operator could apply them. */
async function isForOperator(
  broker: ChangeNeeds,
  ground: Ground,
  changes: readonly HeldChange[],
  denied: readonly PathReason[],
): Promise<boolean> {
  const paths = new Set(denied.map(({ path }) => path));
  const theirs = changes.filter(({ path }) => paths.has(path));
  const denials = await denialsFor(specOfChanges(broker, ground, "operator"), theirs, "operator");
  return (await deniedAmong(theirs, denials)).length === 0;
}

/** Yields to other calls: 30,000 paths and a long deny list take half a second. */
async function deniedAmong(changes: readonly HeldChange[], denials: Denials): Promise<readonly PathReason[]> {
  const denied: PathReason[] = [];
  let bytes = 0;
  for (const { path } of changes) {
    bytes += path.length;
    if (bytes > BYTES_A_TURN) {
      bytes = 0;
      await turn();
    }
    const reason = denials(path);
    if (reason !== undefined) denied.push({ path, reason });
  }
  return denied;
}

async function carryOut(
  { action, by, paths, skipRefused }: ChangeOrder,
  { store, held }: FoundChanges,
  { before, denials, denied = [] }: Partial<Denied> & Pick<Carried, "before">,
  signal: AbortSignal,
): Promise<Pick<Carried, "ending" | "skipped">> {
  const apply = (named: readonly string[] | null): Promise<ApplyEnding> =>
    store.apply(held, named, (path) => denials?.(path) !== undefined, signal);
  const halves = new HalfMoves(() => store.sides(held), signal).among;
  switch (action) {
    case "apply": {
      const chosen = chosenOf(before, paths);
      const changes = isRefusal(chosen) ? [] : chosen.changes;
      if (skipRefused === true) return await applyUnrefused(changes, denied, { apply, halves });
      // A person named the paths; the patterns of a policy say nothing about what belongs together.
      if (by === "policy" && paths !== null)
        return { ending: await applyWhole(changes, before, { apply, halves }, paths) };
      return { ending: await apply(paths) };
    }
    case "discard":
      return { ending: await store.discard(held, paths) };
    case "undo":
      return { ending: await store.undo(held, paths, signal) };
  }
}

type Carried = {
  readonly ending: ApplyEnding;
  /** Present for an apply that skips what is refused. */
  readonly skipped?: readonly PathReason[] | undefined;
  readonly before: readonly HeldChange[];
  readonly started: SpanRecord;
  readonly began: number;
};

async function close(
  broker: ChangeNeeds,
  order: ChangeOrder,
  { store, held }: FoundChanges,
  { ending, skipped, before, started, began }: Carried,
  signal: AbortSignal,
): Promise<ChangesReply | Refusal> {
  const { action } = order;
  if (ending.kind !== "done") {
    const error = { ...refusalOf(order, ending), span_id: started.span_id };
    broker.trace.close(changeRefused(started, began, error));
    return error;
  }
  const { done, left } = ending;
  if (done.length === 0) {
    const error = {
      ...nothingDone(order.span, action, doneWords(broker, order.span)),
      span_id: started.span_id,
    };
    broker.trace.close(changeRefused(started, began, error));
    return error;
  }
  // Undone changes are held again, so list them only now.
  const after = action === "undo" ? await store.list(held, signal, "broker").catch(() => []) : [];
  const changes = listingOf([...before, ...after], done, action === "undo" || left.length > 0);
  broker.trace.close(changeDone(started, began, { done: done.length, left: left.length }, changes));
  return {
    done: done.map(changePath),
    left: left.map(changePath),
    ...(skipped === undefined ? {} : { skipped: listed(skipped) }),
    change_span_id: started.span_id,
  };
}

function recordDenial(
  broker: ChangeNeeds,
  { span, action, by, paths }: ChangeOrder,
  error: Refusal,
): Refusal {
  const line = changeDenied(span, action, by, paths, error);
  try {
    broker.trace.event(line);
    return { ...error, span_id: line.span_id };
  } catch {
    // The denial cannot be recorded, ignoring: no change was made, and the caller gets the refusal anyway.
    return error;
  }
}

/** Formats held changes as the `fs_diff` of a span. Pure. */

/** A link counts as a file, attributes count as content. */
const LISTED = {
  write: "write",
  mod: "mod",
  delete: "delete",
  dir: "dir",
  link: "write",
  mode: "mod",
} as const;

/** Lists the processed changes among all held changes; `held`: some changes are still held. */
export function listingOf(all: readonly HeldChange[], done: readonly string[], held: boolean): FsDiff {
  const wanted = new Set(done);
  const listing = new Listing();
  for (const { path, kind, mode } of all) if (wanted.has(path)) listing.add(LISTED[kind], path, mode);
  return { ...listing.diff(), held };
}
