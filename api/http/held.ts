/** Held changes: looked at by whoever may see the span, changed by the operator, or by an agent whose policy lets it. */
import { isRefusal, quoted, type Refusal, refusal } from "../../broker/model/refusal.ts";
import { realpathSync } from "node:fs";
import type { Request, Response } from "express";
import type { Broker } from "../../broker/broker.ts";
import { changeHeld } from "../../broker/held/change.ts";
import type { Action } from "../../broker/held/change-spans.ts";
import { namedPaths } from "../../broker/held/choose.ts";
import { findHeld } from "../../broker/held/find-held.ts";
import { listHeld } from "../../broker/held/list-held.ts";
import { showHeld } from "../../broker/held/show.ts";
import type { ChangesReply, ChangesRequest, DiffReply, Span } from "../../schemas/generated/types.ts";
import { validateChangesRequest } from "../../schemas/generated/validators.js";
import { sendJson, sendRefusal } from "./answer.ts";
import { type Caller, maySee } from "./caller.ts";
import { whenClientLeaves } from "./client-leaves.ts";
import type { Context } from "./context.ts";
import { strangeIn } from "./paging.ts";
import { validDocument, type Validator } from "./valid-request.ts";

/** Paths of one query; the parser of queries forgets those beyond 1,000. */
const MAX_PATHS = 500;

/** `GET /v1/held?cwd=`: the commands whose changes wait, of the agents that the caller may see. */
export async function handleHeld(
  { broker, caller }: Context,
  request: Request,
  response: Response,
): Promise<void> {
  const strange = strangeIn(request.query, ["cwd"]);
  if (strange !== undefined) return sendRefusal(response, strange);
  const cwd = request.query["cwd"] as string | undefined;
  const signal = whenClientLeaves(request, response);
  const listed = broker.activity.during(() =>
    listHeld(broker, (agent) => maySee(caller, agent), cwd === undefined ? undefined : realOr(cwd), signal),
  );
  if (listed === undefined) return sendRefusal(response, stopping());
  sendJson(response, 200, await listed);
}

/** Spans name projects by their real paths. */
function realOr(path: string): string {
  try {
    return realpathSync.native(path);
  } catch {
    // A folder that is gone may have had changes.
    return path;
  }
}

/** `GET /v1/diff/:span_id?path=…&path=…` */
export async function handleDiff(
  { broker, caller }: Context,
  request: Request,
  response: Response,
): Promise<void> {
  const span = spanOf(broker, caller, request);
  if (span === undefined) return sendRefusal(response, unknownSpan(request));
  const paths = pathsOf(request.query);
  if (paths !== null && isRefusal(paths)) return sendRefusal(response, paths);
  const signal = whenClientLeaves(request, response);
  const reply = await broker.activity.during(() => diffOf(broker, span, paths, signal));
  send(response, reply ?? stopping());
}

/** `POST /v1/apply/:span_id`, `/v1/discard/:span_id`, `/v1/undo/:span_id` */
export function handleChange(
  action: Action,
): (context: Context, request: Request, response: Response) => Promise<void> {
  return async ({ broker, caller, log }, request, response) => {
    const span = spanOf(broker, caller, request);
    if (span === undefined) return sendRefusal(response, unknownSpan(request));
    const validate: Validator<ChangesRequest> = validateChangesRequest;
    const body = await validDocument(request, validate);
    if (isRefusal(body)) return sendRefusal(response, body);
    const paths = namedPaths(body.valid.paths);
    if (paths !== null && isRefusal(paths)) return sendRefusal(response, paths);
    const by = caller.kind === "operator" ? "operator" : "agent";
    const reply = await broker.activity.during(() => changeHeld(broker, { span, action, by, paths }));
    if (reply !== undefined && isRefusal(reply) && reply.code === "busy")
      log.warn({ span: span.span_id, action, refusal: reply }, "Held changes cannot be changed");
    send(response, reply ?? stopping());
  };
}

async function diffOf(
  broker: Broker,
  span: Span,
  paths: readonly string[] | null,
  signal: AbortSignal,
): Promise<DiffReply | Refusal> {
  const found = await findHeld(broker, span, "project");
  return isRefusal(found) ? found : await showHeld(broker, found, paths, signal);
}

/** Somebody else's span is as unknown as one that never was. */
function spanOf(broker: Broker, caller: Caller, request: Request): Span | undefined {
  const span = broker.trace.find(String(request.params["span_id"]));
  return span !== undefined && maySee(caller, span.agent_id) ? span : undefined;
}

function unknownSpan(request: Request): Refusal {
  return refusal(
    "not_found",
    `No span is called ${quoted(request.params["span_id"])}`,
    "Take a span_id from a reply, or from GET /v1/spans ('substrate trace list')",
  );
}

function pathsOf(query: Readonly<Record<string, unknown>>): readonly string[] | null | Refusal {
  const strange = Object.keys(query).find((name) => name !== "path");
  if (strange !== undefined)
    return refusal(
      "invalid_request",
      `${strange}: is no parameter of this call; there is path, received ${quoted(query[strange])}`,
      "Mend the query and ask again",
    );
  const named = query["path"];
  const list = named === undefined || Array.isArray(named) ? named : [named];
  if (list === undefined) return null;
  if (list.length > MAX_PATHS || !list.every((path: unknown): path is string => typeof path === "string"))
    return refusal(
      "invalid_request",
      `path: at most ${MAX_PATHS} paths are taken, received ${quoted(named)}`,
      "Name a folder for everything below it",
    );
  return namedPaths(list);
}

function send(response: Response, reply: DiffReply | ChangesReply | Refusal): void {
  if (isRefusal(reply)) sendRefusal(response, reply);
  else sendJson(response, 200, reply);
}

function stopping(): Refusal {
  return refusal("busy", "The broker is stopping", "Try again once it runs", { retry_after_ms: 1000 });
}
