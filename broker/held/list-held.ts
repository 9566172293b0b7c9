/** `GET /v1/held`: lists commands with held changes. */
import { isRefusal } from "../model/refusal.ts";
import { readdir } from "node:fs/promises";
import type { Waiter } from "../../world/backend.ts";
import { isWithin } from "../model/folders.ts";
import type { HeldReply, HeldSpan, Span } from "../../schemas/generated/types.ts";
import { mayHold } from "./past.ts";
import type { Visible } from "../model/place.ts";
import { changePath } from "./change-path.ts";
import { findHeld, type HeldNeeds } from "./find-held.ts";
import type { Trace } from "../spans/trace.ts";

export type { Waiter };

/** The parts of the broker used for listing. */
export type ListNeeds = HeldNeeds & { readonly trace: Pick<Trace, "find"> };

/** Bound on listed commands, each read by its own process; older commands are only counted. */
const MAX_LISTED = 200;

/** Bound on autorun paths per command. */
const MAX_AUTORUN = 20;

/** Lists changes of the agents accepted by `visible`, in the project around `cwd`, or in all projects. */
export async function listHeld(
  broker: ListNeeds,
  visible: Visible,
  cwd: string | undefined,
  signal: AbortSignal,
  waiter: Waiter,
): Promise<HeldReply> {
  const spans = await holdersOf(broker, visible, cwd);
  const held: HeldSpan[] = [];
  let looked = 0;
  for (const span of spans) {
    if (held.length === MAX_LISTED || signal.aborted) break;
    looked += 1;
    const entry = await entryOf(broker, span, signal, waiter);
    if (entry !== undefined) held.push(entry);
  }
  return { held, more: spans.length - looked };
}

/** Lists the commands that may hold changes, newest first and at most `most`, in the project around `cwd` or in all projects. */
export async function holdersOf(
  broker: ListNeeds,
  visible: Visible,
  cwd: string | undefined,
  most: number = Number.POSITIVE_INFINITY,
): Promise<readonly Span[]> {
  const holders: Span[] = [];
  for (const name of await layerNames(broker)) {
    if (holders.length >= most) break;
    const span = broker.trace.find(name);
    if (span === undefined || !visible(span.agent_id) || !isHolder(broker, span)) continue;
    if (cwd === undefined || isWithin(cwd, span.overlay?.project ?? "")) holders.push(span);
  }
  return holders;
}

/** Lists the layers, newest first: a span id begins with its time. */
async function layerNames({ home }: Pick<HeldNeeds, "home">): Promise<readonly string[]> {
  const names = await readdir(home.overlay).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  });
  return names
    .filter((name) => name.startsWith("spn_"))
    .sort()
    .reverse();
}

/** Whether a span holds changes; running commands have layers too, and so have commands whose layers are about to be removed. */
function isHolder(broker: HeldNeeds, span: Span): boolean {
  if (span.overlay === undefined || span.agent_id === null || span.event_type === "command_start")
    return false;
  return mayHold(span, () => broker.trace.childrenOf(span.span_id));
}

/** Whether all changes were applied or discarded, which needs no project: another folder may lie there by now. */
async function isSpent(broker: HeldNeeds, span: Span, signal: AbortSignal, waiter: Waiter): Promise<boolean> {
  const found = await findHeld(broker, span, "layers");
  if (isRefusal(found)) return false;
  const left = await found.store.list(found.held, signal, waiter).catch(() => undefined);
  return left?.length === 0;
}

/** Describes a span's held changes; undefined if all were applied, discarded or removed meanwhile. */
export async function entryOf(
  broker: HeldNeeds,
  span: Span,
  signal: AbortSignal,
  waiter: Waiter,
): Promise<HeldSpan | undefined> {
  const { overlay, agent_id: agent } = span;
  if (overlay === undefined || agent === null) return undefined;
  const fixed = {
    span_id: span.span_id,
    agent_id: agent,
    project: overlay.project,
    cmd: span.cmd,
    ended_at: span.ts,
  };
  const unread = { paths: null, bytes: null, autorun: [], autorun_count: 0 };
  const found = await findHeld(broker, span, "project");
  if (isRefusal(found)) {
    const isGone = found.code === "not_found" || found.code === "busy";
    if (isGone || (await isSpent(broker, span, signal, waiter))) return undefined;
    return { ...fixed, ...unread, problem: found.message };
  }
  try {
    const changes = await found.store.list(found.held, signal, waiter);
    if (changes.length === 0) return undefined;
    const autorun = changes.filter((change) => change.autorun);
    return {
      ...fixed,
      paths: changes.length,
      bytes: changes.reduce((sum, { size }) => sum + size, 0),
      autorun: autorun.slice(0, MAX_AUTORUN).map(({ path }) => changePath(path)),
      autorun_count: autorun.length,
      problem: null,
    };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { ...fixed, ...unread, problem: `The changes cannot be read: ${why}` };
  }
}
