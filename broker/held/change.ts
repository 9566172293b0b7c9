/** Applies, discards and undoes held changes, step by step. The policy is checked here; the engine knows no policies. */
import { isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";
import { setImmediate as turn } from "node:timers/promises";
import type { ChangesReply, FsDiff } from "../../schemas/generated/types.ts";
import {
  type ApplyEnding,
  type HeldChange,
  type KeyedMutex,
  Listing,
  timeLimit,
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
import { applyUnrefused } from "./skip-refused.ts";

/** The parts of the broker used for changing held changes. */
export type ChangeNeeds = HeldNeeds &
  GroundNeeds & {
    readonly around: Surroundings;
    readonly dirtyFiles: Pick<DirtyFiles, "began" | "ended">;
    readonly heldMutex: KeyedMutex;
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

/** Paths checked against the policy's lists before yielding to other calls. */
const PATHS_A_TURN = 1000;

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
    const { ending, skipped } = await carryOut(order, found, { before, ...denials }, signal);
    return await close(broker, order, found, { ending, skipped, before, started, began }, signal);
  } catch (error) {
    broker.trace.closeFailed(started, error);
    throw error;
  }
}

/**
 * Lists the changes. While waiting for the lock, the project may have been replaced or removed: then the current refusal is
 * returned.
 */
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
      "Nothing is left to do; 'substrate undo' reverts applied changes",
    );
  const chosen = chosenOf(all, paths);
  return isRefusal(chosen) ? chosen : undefined;
}

/** What the policy denies: by path, and of the chosen changes. */
type Denied = { readonly denials: Denials; readonly denied: readonly Reason[] };

/** Finds the policy's denials before any change, so that the refusal can name the rule. */
async function denialsOf(
  broker: ChangeNeeds,
  { by, paths, span, skipRefused }: ChangeOrder,
  found: FoundChanges,
  all: readonly HeldChange[],
): Promise<Denied | Refusal> {
  const ground = groundOfChanges(broker, found);
  if (isRefusal(ground)) return ground;
  const chosen = chosenOf(all, paths);
  if (isRefusal(chosen)) return chosen;
  const denials = await denialsFor(specOfChanges(broker, ground, by), chosen.changes, by);
  const denied = await deniedAmong(chosen.changes, denials);
  if (denied.length === 0 || skipRefused === true) return { denials, denied };
  const { id } = ground.effective;
  const facts = { exit: 126, policy_id: id, rule: null, conflicts: listed(denied) };
  if (by !== "operator" && (await isForOperator(broker, ground, chosen.changes, denied)))
    return refusal(
      "policy_denied",
      `Nothing was applied: only the operator can apply files that tools run later: ${reasonWords(denied)}`,
      `Apply the other changes by path, or all of them with skip_refused; ask the operator to check 'substrate diff ${span.span_id}' and run 'substrate apply ${span.span_id}'`,
      facts,
    );
  return refusal(
    "policy_denied",
    `Nothing was applied: policy '${id}' does not allow writing ${reasonWords(denied)}`,
    "Apply the other changes by path, or all of them with --skip-refused (skip_refused: true); or ask the operator to remove the name from the policy's list first",
    facts,
  );
}

/** Whether only the caller's role forbids these changes: the operator could apply them. */
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

/** Yields to other calls: 30,000 paths and a long deny list take half a second. */
async function deniedAmong(changes: readonly HeldChange[], denials: Denials): Promise<readonly Reason[]> {
  const denied: Reason[] = [];
  for (const [index, { path }] of changes.entries()) {
    if (index % PATHS_A_TURN === PATHS_A_TURN - 1) await turn();
    const reason = denials(path);
    if (reason !== undefined) denied.push({ path, reason });
  }
  return denied;
}

async function carryOut(
  { action, paths, skipRefused }: ChangeOrder,
  { store, held }: FoundChanges,
  { before, denials, denied = [] }: Partial<Denied> & Pick<Carried, "before">,
  signal: AbortSignal,
): Promise<Pick<Carried, "ending" | "skipped">> {
  const apply = (named: readonly string[] | null): Promise<ApplyEnding> =>
    store.apply(held, named, (path) => denials?.(path) !== undefined, signal);
  switch (action) {
    case "apply": {
      if (skipRefused !== true) return { ending: await apply(paths) };
      const chosen = chosenOf(before, paths);
      return await applyUnrefused(isRefusal(chosen) ? [] : chosen.changes, denied, apply);
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
  readonly skipped?: readonly Reason[] | undefined;
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
  // Undone changes are held again, so list them only now.
  const after = action === "undo" ? await store.list(held, signal).catch(() => []) : [];
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

/** Texts for refused changes. Pure. */

/**
 * Refuses a change without effect, such as an undo with no applied change: only the engine knows which changes are applied.
 * `past`: the earlier changes.
 */
function nothingDone({ span_id: id }: SpanRecord, action: Action, past: string | null): Refusal {
  return refusal(
    "not_found",
    `Nothing was ${VERBS[action]}: no change of span ${quoted(id)} is in the project${past === null ? "" : ` (${past})`}`,
    `'substrate diff ${id}' shows what is still held`,
  );
}

const VERBS = { apply: "applied", discard: "discarded", undo: "taken back" } as const;

function refusalOf(action: Action, ending: Exclude<ApplyEnding, { readonly kind: "done" }>): Refusal {
  const nothing = `Nothing was ${VERBS[action]}`;
  if (ending.kind === "failed")
    return refusal(
      "busy",
      `${nothing}: ${ending.message}`,
      "Mend the cause (free space or permissions), then try again",
    );
  if (ending.kind === "conflict")
    return refusal(
      "apply_conflict",
      `${nothing}: ${reasonWords(ending.conflicts)}`,
      action === "undo"
        ? "Look at what changed since; name paths to undo the others"
        : "Look at the diff again; then apply the others (--skip-refused), or run the command again on the project as it is now",
      { conflicts: listed(ending.conflicts) },
    );
  return refusal(
    "apply_conflict",
    `${nothing}: ${reasonWords(ending.refusals)}`,
    action === "apply"
      ? "Name the paths to apply, or leave these held and apply all others: --skip-refused (skip_refused: true)"
      : "Name the paths to use, without these",
    { conflicts: listed(ending.refusals) },
  );
}

function cannotRecord(error: unknown): Refusal {
  const why = error instanceof Error ? error.message : String(error);
  return refusal(
    "busy",
    `Nothing was changed: the change cannot be recorded (${why})`,
    "Free space where SUBSTRATE_HOME lies, then try again",
  );
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

/** Bound on reasons in a reply. */
const MAX_REASONS = 1000;

/** The reason against changing a path: byte path and sentence. */
type Reason = { readonly path: string; readonly reason: string };

/** Formats the reasons for a reply. */
function listed(reasons: readonly Reason[]): Reason[] {
  return reasons.slice(0, MAX_REASONS).map(({ path, reason }) => ({ path: changePath(path), reason }));
}

/** Paths that a refusal's message names. */
const MAX_NAMED = 3;

/** Formats the reasons for the first paths, each reason once; the reply lists the others. */
function reasonWords(reasons: readonly Reason[]): string {
  const named = new Map<string, string[]>();
  for (const { path, reason } of reasons.slice(0, MAX_NAMED))
    named.set(reason, [...(named.get(reason) ?? []), quoted(changePath(path))]);
  const some = [...named].map(([reason, paths]) => `${paths.join(", ")}: ${reason}`);
  const more = reasons.length - MAX_NAMED;
  return `${some.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}
