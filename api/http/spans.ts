import type { Request, Response } from "express";
import { quoted, type Refusal, refusal } from "../../broker/refusal.ts";
import type { SpanQuery } from "../../broker/spans/span-order.ts";
import { sendJson, sendRefusal } from "./answer.ts";
import { maySee } from "./caller.ts";
import type { Context } from "./context.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1000;
const KNOWN = ["session_id", "agent_id", "verdict", "outcome", "since", "limit", "cursor"];

/** What a span's decision can say, and how it can end: a misspelt one would quietly find nothing. */
const VERDICTS = ["allow", "isolate", "ask", "deny", "would_deny", "would_ask", "would_isolate"];
const OUTCOMES = ["running", "ended", "timed_out", "cancelled", "lost", "refused", "failed"];

/** `GET /v1/spans?session_id=&agent_id=&verdict=&outcome=&since=&limit=&cursor=`, newest first. */
export function handleSpans({ broker, caller }: Context, request: Request, response: Response): void {
  const query = parseQuery(request.query);
  if ("code" in query) return sendRefusal(response, query);
  const session = query.session === undefined ? undefined : broker.sessions.find(query.session);
  if (query.session !== undefined && (session === undefined || !maySee(caller, session.agent))) {
    return sendRefusal(
      response,
      refusal("not_found", `No session is called ${quoted(query.session)}`, "Take a session_id from a reply"),
    );
  }
  const agent = caller.kind === "agent" ? caller.agent : query.agent;
  const page = broker.trace.list({ ...query, agent, sees: (owner) => maySee(caller, owner) });
  const { indexing } = broker.trace;
  sendJson(response, 200, {
    spans: page.spans,
    next_cursor: page.next === null ? null : String(page.next),
    ...(indexing === null ? {} : { indexing }),
  });
}

function parseQuery(query: Readonly<Record<string, unknown>>): SpanQuery | Refusal {
  const strange = Object.keys(query).find((name) => !KNOWN.includes(name));
  if (strange !== undefined)
    return wrong(strange, query[strange], `is no parameter of this call; there are ${KNOWN.join(", ")}`);
  for (const name of KNOWN) {
    if (query[name] !== undefined && typeof query[name] !== "string")
      return wrong(name, query[name], "must be given once");
  }
  const limit = wholeNumber(query["limit"], DEFAULT_LIMIT);
  if (limit === undefined || limit < 1 || limit > MAX_LIMIT)
    return wrong("limit", query["limit"], `must be a whole number from 1 to ${MAX_LIMIT}`);
  const before = query["cursor"] === undefined ? undefined : wholeNumber(query["cursor"], 0);
  if (query["cursor"] !== undefined && before === undefined)
    return wrong("cursor", query["cursor"], "must be the next_cursor of a reply");
  const since = timeOf(query["since"]);
  if (since === null) return wrong("since", query["since"], "must be a time such as 2026-01-31T12:00:00Z");
  for (const [name, words] of [
    ["verdict", VERDICTS],
    ["outcome", OUTCOMES],
  ] as const) {
    const word = query[name] as string | undefined;
    if (word !== undefined && !words.includes(word))
      return wrong(name, word, `must be one of ${words.join(", ")}`);
  }
  const text = (name: string): string | undefined => query[name] as string | undefined;
  return {
    session: text("session_id"),
    agent: text("agent_id"),
    verdict: text("verdict"),
    outcome: text("outcome"),
    since,
    limit,
    before,
  };
}

function wholeNumber(value: unknown, absent: number): number | undefined {
  if (value === undefined) return absent;
  return typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/** In milliseconds since 1970; null when it is no time. */
function timeOf(value: unknown): number | undefined | null {
  if (value === undefined) return undefined;
  const time = typeof value === "string" ? new Date(value) : undefined;
  return time === undefined || Number.isNaN(time.getTime()) ? null : time.getTime();
}

function wrong(name: string, value: unknown, wanted: string): Refusal {
  return refusal(
    "invalid_request",
    `${name}: ${wanted}, received ${quoted(value)}`,
    "Mend the query and ask again",
  );
}
