/** Applying, discarding and taking back, step by step. The engine is dumb about policies; here they hold. */
import { isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";
import { setImmediate as turn } from "node:timers/promises";
import type { ChangesReply, FsDiff } from "../../schemas/generated/types.ts";
import {
  type ApplyEnding,
  beyondBounds,
  type HeldChange,
  type KeyedMutex,
  MAX_FILES,
  MAX_FOLDERS,
  NO_CHANGES,
} from "../../world/backend.ts";
import type { Ground, GroundNeeds } from "../policies/judge.ts";
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
import { chosenOf } from "./choose.ts";
import { type Denials, denialsFor } from "./denied-paths.ts";
import { findHeld, type FoundChanges, type HeldNeeds } from "./find-held.ts";
import { groundOfChanges, notByAgents, notUndoneByAgents, specOfChanges } from "./may-change.ts";
import { doneWords, pastWords } from "./past.ts";

/** What changing held changes needs of the broker. */
export type ChangeNeeds = HeldNeeds &
  GroundNeeds & {
    readonly around: Surroundings;
    readonly dirtyFiles: Pick<DirtyFiles, "began" | "ended">;
    readonly heldMutex: KeyedMutex;
    readonly trace: Trace;
  };

/** `paths`: byte paths, null for all. */
export type ChangeOrder = {
  readonly span: SpanRecord;
  readonly action: Action;
  readonly by: Asker;
  readonly paths: readonly string[] | null;
};

/** For 30,000 files on a slow disk; whoever asked may be gone by then, and it is done all the same. */
const PATIENCE_MS = 600_000;

/** Paths that are compared with the policy's lists before another call has its turn. */
const PATHS_A_TURN = 1000;

/** What a call on the API does: found, allowed, and then in its turn. */
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

/** The same when all that is settled: one at a time in each project. */
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
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const before = await listInTurn(broker, order, found, signal);
  if (isRefusal(before)) return before;
  const unfit = order.action === "undo" ? undefined : nothingToDo(broker, order, before);
  if (unfit !== undefined) return unfit;
  const denials = order.action === "apply" ? await denialsOf(broker, order, found, before) : undefined;
  if (denials !== undefined && isRefusal(denials)) return recordDenial(broker, order, denials);
  const started = changeStarted(order.span, order.action, order.by, order.paths);
  const began = performance.now();
  try {
    await broker.trace.start(started);
  } catch (error) {
    broker.trace.closeFailed(started, error);
    return cannotRecord(error);
  }
  try {
    const ending = await carryOut(order, found, denials?.denials ?? (() => undefined), signal);
    return await close(broker, order, found, { ending, before, started, began }, signal);
  } catch (error) {
    broker.trace.closeFailed(started, error);
    throw error;
  }
}

/** Whoever waited for its turn may find another project there, or none: then it is told what it would be told now. */
async function listInTurn(
  broker: ChangeNeeds,
  order: ChangeOrder,
  { store, held }: FoundChanges,
  signal: AbortSignal,
): Promise<readonly HeldChange[] | Refusal> {
  try {
    return await store.list(held, signal);
  } catch (error) {
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
      "There is nothing left to do; 'substrate undo' takes applied changes back",
    );
  const chosen = chosenOf(all, paths);
  return isRefusal(chosen) ? chosen : undefined;
}

/** What the policy denies is found before anything begins, so that its rule can be named. */
async function denialsOf(
  broker: ChangeNeeds,
  { by, paths, span }: ChangeOrder,
  found: FoundChanges,
  all: readonly HeldChange[],
): Promise<{ readonly denials: Denials } | Refusal> {
  const ground = groundOfChanges(broker, found);
  if (isRefusal(ground)) return ground;
  const chosen = chosenOf(all, paths);
  if (isRefusal(chosen)) return chosen;
  const denials = await denialsFor(specOfChanges(broker, ground, by), chosen.changes, by);
  const denied = await deniedAmong(chosen.changes, denials);
  if (denied.length === 0) return { denials };
  const { id } = ground.effective;
  const facts = { exit: 126, policy_id: id, rule: null, conflicts: listed(denied) };
  if (by !== "operator" && (await isForOperator(broker, ground, chosen.changes, denied)))
    return refusal(
      "policy_denied",
      `Nothing was applied: the operator alone applies what tools run later: ${reasonWords(denied)}`,
      `Apply the other changes by path; ask the operator to look at 'substrate diff ${span.span_id}' and to run 'substrate apply ${span.span_id}'`,
      facts,
    );
  return refusal(
    "policy_denied",
    `Nothing was applied: policy '${id}' lets nobody write ${reasonWords(denied)}`,
    "Apply the other changes by path, or let the operator take the name off the policy's list first",
    facts,
  );
}

/** Whether nothing but the asker speaks against applying them. */
async function isForOperator(
  broker: ChangeNeeds,
  ground: Ground,
  changes: readonly HeldChange[],
  denied: readonly Reason[],
): Promise<boolean> {
  const paths = new Set(denied.map(({ path }) => path));
  const theirs = changes.filter(({ path }) => paths.has(path));
  const denials = await denialsFor(specOfChanges(broker, ground, "operator"), theirs, "operator");
  return (await deniedAmong(theirs, denials)).length === 0;
}

/** Between other calls: 30,000 paths and a long deny list are half a second. */
async function deniedAmong(changes: readonly HeldChange[], denials: Denials): Promise<readonly Reason[]> {
  const denied: Reason[] = [];
  for (const [index, { path }] of changes.entries()) {
    if (index % PATHS_A_TURN === PATHS_A_TURN - 1) await turn();
    const reason = denials(path);
    if (reason !== undefined) denied.push({ path, reason });
  }
  return denied;
}

function carryOut(
  { action, paths }: ChangeOrder,
  { store, held }: FoundChanges,
  denials: Denials,
  signal: AbortSignal,
): Promise<ApplyEnding> {
  switch (action) {
    case "apply":
      return store.apply(held, paths, (path) => denials(path) !== undefined, signal);
    case "discard":
      return store.discard(held, paths);
    case "undo":
      return store.undo(held, paths, signal);
  }
}

type Carried = {
  readonly ending: ApplyEnding;
  readonly before: readonly HeldChange[];
  readonly started: SpanRecord;
  readonly began: number;
};

async function close(
  broker: ChangeNeeds,
  order: ChangeOrder,
  { store, held }: FoundChanges,
  { ending, before, started, began }: Carried,
  signal: AbortSignal,
): Promise<ChangesReply | Refusal> {
  const { action } = order;
  if (ending.kind !== "done") {
    const error = { ...refusalOf(action, ending), span_id: started.span_id };
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
  // What an undo took back is held again, and only then listed.
  const after = action === "undo" ? await store.list(held, signal).catch(() => []) : [];
  const changes = listingOf([...before, ...after], done, action === "undo" || left.length > 0);
  broker.trace.close(changeDone(started, began, { done: done.length, left: left.length }, changes));
  return { done: done.map(changePath), left: left.map(changePath), change_span_id: started.span_id };
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
    // It cannot be recorded, ignoring: nothing happened, and the caller is told no all the same.
    return error;
  }
}

/** What is said where nothing was applied, discarded or taken back. Pure. */

/** An undo with nothing to take back: what is applied only the engine knows. `past`: what was done so far. */
function nothingDone({ span_id: id }: SpanRecord, action: Action, past: string | null): Refusal {
  return refusal(
    "not_found",
    `Nothing was ${VERBS[action]}: no change of span ${quoted(id)} is in the project${past === null ? "" : ` (${past})`}`,
    `'substrate diff ${id}' shows what is held still`,
  );
}

const VERBS = { apply: "applied", discard: "discarded", undo: "taken back" } as const;

function refusalOf(action: Action, ending: Exclude<ApplyEnding, { readonly kind: "done" }>): Refusal {
  const nothing = `Nothing was ${VERBS[action]}`;
  if (ending.kind === "failed")
    return refusal(
      "busy",
      `${nothing}, and all is as it was: ${ending.message}`,
      "Mend that (free space, or permissions), then try again",
    );
  if (ending.kind === "conflict")
    return refusal(
      "apply_conflict",
      `${nothing}: ${reasonWords(ending.conflicts)}`,
      action === "undo"
        ? "Look at what changed since; name paths to take back the others"
        : "Look at the diff again; apply the other paths by name, or run the command again on the project as it is now",
      { conflicts: listed(ending.conflicts) },
    );
  return refusal(
    "apply_conflict",
    `${nothing}: ${reasonWords(ending.refusals)}`,
    "Name the paths of the diff that are meant, without these",
    { conflicts: listed(ending.refusals) },
  );
}

function cannotRecord(error: unknown): Refusal {
  const why = error instanceof Error ? error.message : String(error);
  return refusal(
    "busy",
    `Nothing was changed: it cannot be recorded (${why})`,
    "Free space where SUBSTRATE_HOME lies, then try again",
  );
}

/** Held changes as the `fs_diff` of a span. Pure. */

/** What was done, of all that was held; `held`: something is still. */
export function listingOf(all: readonly HeldChange[], done: readonly string[], held: boolean): FsDiff {
  const wanted = new Set(done);
  const changes = all.filter(({ path }) => wanted.has(path));
  const files = changes.filter(({ kind }) => kind !== "dir");
  const folders = changes.filter(({ kind }) => kind === "dir");
  const listed = files.slice(0, MAX_FILES);
  const gaps = beyondBounds(files.length, folders.length);
  const pathsOf = (kinds: readonly HeldChange["kind"][]): string[] =>
    listed.filter(({ kind }) => kinds.includes(kind)).map(shown);
  return {
    ...NO_CHANGES,
    writes: pathsOf(["write", "link"]),
    mods: pathsOf(["mod", "mode"]),
    deletes: pathsOf(["delete"]),
    dirs: folders.slice(0, MAX_FOLDERS).map(shown),
    autorun: files
      .filter(({ autorun }) => autorun)
      .slice(0, MAX_FILES)
      .map(shown),
    held,
    truncated: gaps.length > 0,
    summary: gaps[0] ?? null,
  };
}

/** As the fs_diff of the command itself has them. */
function shown({ path }: HeldChange): string {
  return Buffer.from(path, "latin1").toString("utf8");
}

/** Reasons that an answer lists. */
const MAX_REASONS = 1000;

/** Why a path cannot be applied, discarded or taken back: its bytes, and a sentence. */
type Reason = { readonly path: string; readonly reason: string };

/** For an answer. */
function listed(reasons: readonly Reason[]): Reason[] {
  return reasons.slice(0, MAX_REASONS).map(({ path, reason }) => ({ path: changePath(path), reason }));
}

/** The first three; the answer lists the others. */
function reasonWords(reasons: readonly Reason[]): string {
  const some = reasons.slice(0, 3).map(({ path, reason }) => `${quoted(changePath(path))}: ${reason}`);
  const more = reasons.length - some.length;
  return `${some.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}
