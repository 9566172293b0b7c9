import { isRefusal, quoted, type Refusal, refusal } from "../../broker/model/refusal.ts";
import type { Request, Response } from "express";
import { treePage } from "../../broker/spans/span-tree.ts";
import type { Span } from "../../schemas/generated/types.ts";
import { sendJson, sendRefusal } from "./answer.ts";
import { maySee } from "./caller.ts";
import type { Context } from "./context.ts";
import { type Paging, pagingOf, wrongParameter } from "./paging.ts";

/** A build has thousands of programs: while a page of them is read nobody else is served. */
const OF_TREE = { usual: 500, most: 1000 };

/** Nearly every command has fewer. */
const OF_CHILDREN = { usual: 2000, most: 5000 };

/** `GET /v1/trace/:span_id?limit=&cursor=`. Somebody else's span is as unknown as one that never was. */
export function handleTrace({ broker, caller }: Context, request: Request, response: Response): void {
  const { trace } = broker;
  const asked = askedFor(trace, caller, request, OF_CHILDREN);
  if (isRefusal(asked)) return sendRefusal(response, asked);
  const { span, limit, cursor } = asked;
  if (cursor !== undefined && trace.parentOf(cursor) !== span.span_id)
    return sendRefusal(response, wrongCursor(cursor));
  const ids = trace.childIds(span.span_id, cursor, limit);
  const children = ids.flatMap((id) => trace.find(id) ?? []);
  const last = ids.length === limit ? ids.at(-1) : undefined;
  sendJson(response, 200, {
    span,
    children: children.filter((child) => maySee(caller, child.agent_id)),
    ...(last === undefined ? {} : { next_cursor: last }),
  });
}

/** `GET /v1/trace/:span_id/tree?limit=&cursor=`: all below it. */
export function handleTraceTree({ broker, caller }: Context, request: Request, response: Response): void {
  const asked = askedFor(broker.trace, caller, request, OF_TREE);
  if (isRefusal(asked)) return sendRefusal(response, asked);
  const { span, limit, cursor: after } = asked;
  const sees = (agent: string | null): boolean => maySee(caller, agent);
  const page = treePage(broker.trace, { root: span.span_id, after, limit, sees });
  if (page === undefined) return sendRefusal(response, wrongCursor(after));
  sendJson(response, 200, { spans: page.spans, next_cursor: page.next });
}

function askedFor(
  trace: Context["broker"]["trace"],
  caller: Context["caller"],
  request: Request,
  bounds: Parameters<typeof pagingOf>[1],
): (Paging & { readonly span: Span }) | Refusal {
  const id = String(request.params["span_id"]);
  const span = trace.find(id);
  if (span === undefined || !maySee(caller, span.agent_id))
    return refusal(
      "not_found",
      `No span is called ${quoted(id)}`,
      "Take a span_id from a reply, or from GET /v1/spans ('substrate trace list')",
    );
  const paging = pagingOf(request.query, bounds);
  return isRefusal(paging) ? paging : { ...paging, span };
}

function wrongCursor(cursor: string | undefined): Refusal {
  return wrongParameter("cursor", cursor, "must be the next_cursor of a reply about this span");
}
