import { isRefusal, quoted, type Refusal, refusal } from "../../broker/model/refusal.ts";
import type { Request } from "express";
import { treePage } from "../../broker/spans/span-tree.ts";
import type { Span } from "../../schemas/generated/types.ts";
import type { Call } from "./call.ts";
import { maySee } from "./caller.ts";
import { type Paging, pagingOf, wrongParameter } from "./paging.ts";

/** Page sizes of a tree. A build has thousands of programs, and reading a page blocks the event loop. */
const OF_TREE = { usual: 500, most: 1000 };

/** Page sizes of a span's children; nearly every command has fewer. */
const OF_CHILDREN = { usual: 2000, most: 5000 };

/** `GET /v1/trace/:span_id?limit=&cursor=`: shows a span and its direct children. Another agent's span counts as unknown. */
export function handleTrace(call: Call<undefined, Request>): object {
  const { trace } = call.broker;
  const asked = askedFor(call, OF_CHILDREN);
  if (isRefusal(asked)) return asked;
  const { span, limit, cursor } = asked;
  if (cursor !== undefined && trace.parentOf(cursor) !== span.span_id) return wrongCursor(cursor);
  const ids = trace.childIds(span.span_id, cursor, limit);
  const children = ids.flatMap((id) => trace.find(id) ?? []);
  const last = ids.length === limit ? ids.at(-1) : undefined;
  return {
    span,
    children: children.filter((child) => maySee(call.caller, child.agent_id)),
    ...(last === undefined ? {} : { next_cursor: last }),
  };
}

/** `GET /v1/trace/:span_id/tree?limit=&cursor=`: shows all descendants of a span. */
export function handleTraceTree(call: Call<undefined, Request>): object {
  const asked = askedFor(call, OF_TREE);
  if (isRefusal(asked)) return asked;
  const { span, limit, cursor: after } = asked;
  const sees = (agent: string | null): boolean => maySee(call.caller, agent);
  const page = treePage(call.broker.trace, { root: span.span_id, after, limit, sees });
  return page === undefined ? wrongCursor(after) : { spans: page.spans, next_cursor: page.next };
}

function askedFor(
  { broker: { trace }, caller, request }: Call<undefined, Request>,
  bounds: Parameters<typeof pagingOf>[1],
): (Paging & { readonly span: Span }) | Refusal {
  const id = String(request.params["span_id"]);
  const span = trace.find(id);
  if (span === undefined || !maySee(caller, span.agent_id))
    return refusal(
      "not_found",
      `Unknown span ${quoted(id)}`,
      "Take a span_id from a reply, or from GET /v1/spans ('substrate trace list')",
    );
  const paging = pagingOf(request.query, bounds);
  return isRefusal(paging) ? paging : { ...paging, span };
}

function wrongCursor(cursor: string | undefined): Refusal {
  return wrongParameter("cursor", cursor, "must be the next_cursor of a reply about this span");
}
