/** Routes of held changes: shown to every caller allowed to see the span, changed by the operator or an agent permitted by policy. */
import type { Request } from "express";
import type { Broker } from "../../broker/broker.ts";
import { changeHeld } from "../../broker/held/change.ts";
import type { Action } from "../../broker/held/change-spans.ts";
import { namedPaths } from "../../broker/held/choose.ts";
import { findHeld } from "../../broker/held/find-held.ts";
import { listHeld, type Waiter } from "../../broker/held/list-held.ts";
import { showHeld } from "../../broker/held/show.ts";
import { realPath } from "../../broker/model/host-paths.ts";
import { isRefusal, quoted, type Refusal, refusal, stopping } from "../../broker/model/refusal.ts";
import type { ChangesRequest, DiffReply, Span } from "../../schemas/generated/types.ts";
import type { Call, Handle, Read } from "./call.ts";
import { maySee } from "./caller.ts";
import { whenClientLeaves } from "./client-leaves.ts";
import type { Context } from "./context.ts";
import { strangeIn, unknownParameter } from "./paging.ts";

/** Maximum of paths in a query; the query parser silently drops parameters beyond 1,000. */
const MAX_PATHS = 500;

/** Input of a call about a span visible to the caller. */
type OfSpan<Body> = { readonly span: Span; readonly body: Body };

/** Finds the span of the path, then reads the body. */
export function ofSpan<Body>(read: Read<Body>): Read<OfSpan<Body>, Request> {
  return async (request, context) => {
    const span = spanNamed(context, request);
    if (span === undefined) return unknownSpan(request);
    const body = await read(request, context);
    return isRefusal(body) ? body : { valid: { span, body: body.valid } };
  };
}

/** Finds the span of the path; undefined also for another agent's span, so answers do not reveal its existence. */
export function spanNamed({ broker, caller }: Context, request: Request): Span | undefined {
  const span = broker.trace.find(String(request.params["span_id"]));
  return span !== undefined && maySee(caller, span.agent_id) ? span : undefined;
}

export function unknownSpan(request: Request): Refusal {
  return refusal(
    "not_found",
    `Unknown span ${quoted(request.params["span_id"])}`,
    "Take a span_id from a reply, or from GET /v1/spans ('substrate trace list')",
  );
}

/** `GET /v1/held?cwd=`: lists commands with held changes, of the agents visible to the caller. */
export async function handleHeld(call: Call<undefined, Request>): Promise<object> {
  const { broker, caller, request, response } = call;
  const strange = strangeIn(request.query, ["cwd"]);
  if (strange !== undefined) return strange;
  const cwd = request.query["cwd"] as string | undefined;
  const signal = whenClientLeaves(request, response);
  const listed = broker.activity.during(() =>
    // Spans hold real project paths. A deleted folder may still have held changes.
    listHeld(
      broker,
      (agent) => maySee(caller, agent),
      cwd === undefined ? undefined : (realPath(cwd) ?? cwd),
      signal,
      waiterOf(caller),
    ),
  );
  return (await listed) ?? stopping();
}

/** `GET /v1/diff/:span_id?path=…&path=…` */
export async function handleDiff(call: Call<OfSpan<undefined>, Request>): Promise<object> {
  const { broker, body, caller, request, response } = call;
  const paths = pathsOf(request.query);
  if (paths !== null && isRefusal(paths)) return paths;
  const signal = whenClientLeaves(request, response);
  return (
    (await broker.activity.during(() => diffOf(broker, body.span, paths, signal, waiterOf(caller)))) ??
    stopping()
  );
}

function waiterOf({ kind }: Context["caller"]): Waiter {
  return kind === "operator" ? "operator" : "agent";
}

/** `POST /v1/apply/:span_id`, `/v1/discard/:span_id`, `/v1/undo/:span_id` */
export function handleChange(action: Action): Handle<OfSpan<ChangesRequest>, Request> {
  return async ({ broker, caller, log, body: { span, body } }) => {
    const paths = namedPaths(body.paths);
    if (paths !== null && isRefusal(paths)) return paths;
    const skipRefused = body.skip_refused === true;
    if (skipRefused && action !== "apply")
      return refusal("invalid_request", `skip_refused: only an apply can skip changes`, "Leave it out", {
        path: "skip_refused",
      });
    const by = caller.kind === "operator" ? "operator" : "agent";
    const reply = await broker.activity.during(() =>
      changeHeld(broker, { span, action, by, paths, skipRefused }),
    );
    if (reply !== undefined && isRefusal(reply) && reply.code === "busy")
      log.warn({ span: span.span_id, action, refusal: reply }, "Held changes cannot be changed");
    return reply ?? stopping();
  };
}

async function diffOf(
  broker: Broker,
  span: Span,
  paths: readonly string[] | null,
  signal: AbortSignal,
  waiter: Waiter,
): Promise<DiffReply | Refusal> {
  const found = await findHeld(broker, span, "project");
  return isRefusal(found) ? found : await showHeld(broker, found, paths, signal, waiter);
}

function pathsOf(query: Readonly<Record<string, unknown>>): readonly string[] | null | Refusal {
  const strange = Object.keys(query).find((name) => name !== "path");
  if (strange !== undefined) return unknownParameter(strange, query[strange], ["path"]);
  const named = query["path"];
  const list = named === undefined || Array.isArray(named) ? named : [named];
  if (list === undefined) return null;
  if (list.length > MAX_PATHS || !list.every((path: unknown): path is string => typeof path === "string"))
    return refusal(
      "invalid_request",
      `path: at most ${MAX_PATHS} paths are accepted, received ${quoted(named)}`,
      "Name a folder to include everything below it",
    );
  return namedPaths(list);
}
