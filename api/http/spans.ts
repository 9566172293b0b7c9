import { isRefusal, quoted, type Refusal, refusal } from "../../broker/model/refusal.ts";
import type { Request } from "express";
import type { SpanQuery } from "../../broker/spans/span-lists.ts";
import type { Call } from "./call.ts";
import { maySee } from "./caller.ts";
import { limitOf, type Query, strangeIn, wholeNumber, wrongParameter } from "./paging.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1000;
const KNOWN = ["session_id", "agent_id", "verdict", "outcome", "programs", "since", "limit", "cursor"];

/** Accepted values of the filters: a misspelt value would silently match no span. */
const VERDICTS = ["allow", "isolate", "ask", "deny", "would_deny", "would_ask", "would_isolate"];
const OUTCOMES = ["running", "ended", "timed_out", "cancelled", "lost", "refused", "failed"];

const PROGRAMS = ["true", "false"];

/**
 * `GET /v1/spans?session_id=&agent_id=&verdict=&outcome=&since=&limit=&cursor=`, newest first. `programs=true` lists only programs
 * started by commands; by default programs are omitted.
 */
export function handleSpans({ broker, caller, request }: Call<undefined, Request>): object {
  const query = parseQuery(request.query);
  if (isRefusal(query)) return query;
  const session = query.session === undefined ? undefined : broker.sessions.find(query.session);
  if (query.session !== undefined && (session === undefined || !maySee(caller, session.agent)))
    return refusal("not_found", `Unknown session ${quoted(query.session)}`, "Take a session_id from a reply");
  const agent = caller.kind === "agent" ? caller.agent : query.agent;
  const page = broker.trace.list({ ...query, agent, sees: (owner) => maySee(caller, owner) });
  return { spans: page.spans, next_cursor: page.next === null ? null : String(page.next) };
}

function parseQuery(query: Query): SpanQuery | Refusal {
  const strange = strangeIn(query, KNOWN);
  if (strange !== undefined) return strange;
  const limit = limitOf(query, DEFAULT_LIMIT, MAX_LIMIT);
  if (typeof limit !== "number") return limit;
  const before = query["cursor"] === undefined ? undefined : wholeNumber(query["cursor"], 0);
  if (query["cursor"] !== undefined && before === undefined)
    return wrongParameter("cursor", query["cursor"], "must be the next_cursor of a reply");
  const since = timeOf(query["since"]);
  if (since === null)
    return wrongParameter("since", query["since"], "must be a time such as 2026-01-31T12:00:00Z");
  for (const [name, words] of [
    ["verdict", VERDICTS],
    ["outcome", OUTCOMES],
    ["programs", PROGRAMS],
  ] as const) {
    const word = query[name] as string | undefined;
    if (word !== undefined && !words.includes(word))
      return wrongParameter(name, word, `must be one of ${words.join(", ")}`);
  }
  const text = (name: string): string | undefined => query[name] as string | undefined;
  return {
    session: text("session_id"),
    agent: text("agent_id"),
    verdict: text("verdict"),
    outcome: text("outcome"),
    programs: text("programs") === "true",
    since,
    limit,
    before,
  };
}

/** Parses a time into milliseconds since 1970; null for an invalid time. */
function timeOf(value: unknown): number | undefined | null {
  if (value === undefined) return undefined;
  const time = typeof value === "string" ? new Date(value) : undefined;
  return time === undefined || Number.isNaN(time.getTime()) ? null : time.getTime();
}
