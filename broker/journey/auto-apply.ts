/** Applies held changes under `changes.auto_apply` after an isolated command has ended. */
import { isRefusal } from "../model/refusal.ts";
import type { AutoApplied } from "../held/hint.ts";
import { join, posix } from "node:path";
import { type Cover, coverOf, type HeldChange, timeLimit, type World } from "../../world/backend.ts";
import type { Broker } from "../broker.ts";
import { pathPatterns } from "../policy/files/file-scope.ts";
import type { Job } from "../model/job.ts";
import type { Ran } from "../worlds/run.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { changeFound } from "../held/change.ts";
import { unreadHeld } from "../held/unread.ts";
import { changePath } from "../held/change-path.ts";

/** Time-out for listing the held changes; applying has its own time-out. */
const PATIENCE_MS = 30_000;

/** Returns undefined when the policy names no paths, no named path changed, or the command did not end by itself. */
export async function autoApply(
  broker: Broker,
  job: Job,
  world: World,
  started: SpanRecord,
  ran: Ran,
): Promise<AutoApplied | undefined> {
  const { access, files } = world.spec;
  const isInside = insideOf(broker, job, files.held ?? []);
  const store = broker.backend.held;
  if (isInside === undefined || store === null || access.kind !== "overlay" || world.mountedAt === null)
    return undefined;
  const hasEnded = ran.ending.kind === "exited" || ran.ending.kind === "signalled";
  if (ran.timedOut || ran.cancelled || !hasEnded) return undefined;
  const { project, identity } = job.place;
  const held = { layers: access.layers, project, identity, mountedAt: world.mountedAt };
  const all = await store.list(held, timeLimit(PATIENCE_MS), "broker").catch((error: unknown) => {
    const unread = unreadHeld(error, job.span);
    if (unread === undefined) throw error;
    return unread;
  });
  if (isRefusal(all)) return { applied: 0, held: true, words: `changes.auto_apply: ${all.message}` };
  const inside = all.filter(isInside);
  if (inside.length === 0) return undefined;
  const outside = all.filter((change) => !isInside(change));
  const unattended = outside.find(({ autorun }) => autorun);
  if (unattended !== undefined)
    return {
      applied: 0,
      held: true,
      words: `changes.auto_apply applied nothing: '${changePath(unattended.path)}' changed too, which tools run by themselves`,
    };
  await broker.worlds.ending.follow(world, world.end("its command has ended"));
  const paths = outside.length === 0 ? null : topsOf(inside);
  const order = { span: started, action: "apply", by: "policy", paths } as const;
  const found = { span: started, held, store, place: job.place, agent: job.agent };
  const reply = await changeFound(broker, order, found);
  if (isRefusal(reply)) return { applied: 0, held: true, words: `changes.auto_apply: ${reply.message}` };
  const { done, left, change_span_id: id } = reply;
  return {
    applied: done.length,
    held: left.length > 0,
    words: `${counted(done.length)} applied to the project by changes.auto_apply (${id})`,
  };
}

function counted(count: number): string {
  return count === 1 ? "1 change was" : `${count} changes were`;
}

/**
 * Tests whether every policy in force lets a change apply automatically. Denied autorun files (`held`) never apply automatically:
 * the operator applies them.
 */
function insideOf(
  broker: Broker,
  { effective, place }: Job,
  held: readonly string[],
): ((change: HeldChange) => boolean) | undefined {
  const { project } = place;
  const places = effective.policies.map(({ document }) =>
    pathPatterns(document.changes?.auto_apply ?? [], project, broker.around.home).map(placeOf),
  );
  if (places.some((list) => list.length === 0)) return undefined;
  const forOperator = held.map(coverOf);
  return ({ path, kind }) => {
    const whole = join(project, Buffer.from(path, "latin1").toString("utf8"));
    if (forOperator.some((cover) => cover.covers(whole))) return false;
    return places.every((list) => list.some((holds) => holds(whole, kind)));
  };
}

/** `folder/**` covers a folder's contents, and a new folder of that name; never a link replacing the folder, nor its removal. */
function placeOf(pattern: string): (path: string, kind: HeldChange["kind"]) => boolean {
  const cover: Cover = coverOf(pattern);
  if (!pattern.endsWith("/**")) return (path) => cover.covers(path);
  return (path, kind) => cover.covers(path) && (kind === "dir" || cover.covers(posix.dirname(path)));
}

/** Drops paths below a new folder that is itself in the list. */
function topsOf(changes: readonly HeldChange[]): readonly string[] {
  const folders = new Set(changes.filter(({ kind }) => kind === "dir").map(({ path }) => path));
  const isBelow = (path: string): boolean => {
    for (let over = posix.dirname(path); over !== "."; over = posix.dirname(over))
      if (folders.has(over)) return true;
    return false;
  };
  return changes.map(({ path }) => path).filter((path) => !isBelow(path));
}
