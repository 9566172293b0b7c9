import type { Request, Response } from "express";
import { quoted, refusal } from "../../broker/refusal.ts";
import { sendJson, sendRefusal } from "./answer.ts";
import { maySee } from "./caller.ts";
import type { Context } from "./context.ts";

/** `GET /v1/trace/:span_id`. Somebody else's span is as unknown as one that never was. */
export function handleTrace({ broker, caller }: Context, request: Request, response: Response): void {
  const id = String(request.params["span_id"]);
  const span = broker.trace.find(id);
  if (span === undefined || !maySee(caller, span.agent_id)) {
    return sendRefusal(
      response,
      refusal("not_found", `No span is called ${quoted(id)}`, hintFor(broker.trace.indexing)),
    );
  }
  sendJson(response, 200, {
    span,
    children: broker.trace.childrenOf(id).filter((child) => maySee(caller, child.agent_id)),
  });
}

function hintFor(indexing: { readonly read: number; readonly all: number } | null): string {
  if (indexing === null) return "Take a span_id from a reply, or from GET /v1/spans ('substrate trace list')";
  const share = Math.floor((100 * indexing.read) / indexing.all);
  return `The index of the trace is being made again (${share} %), and older spans are found when it is done: ask again then`;
}
