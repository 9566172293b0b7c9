import type { Span, SpansReply } from "../../../schemas/generated/types.ts";
import { ask } from "../terminal/replies.ts";
import { spanLine } from "../words/span-lines.ts";
import { Complaint, printJson, printLine, type Terminal } from "../terminal/terminal.ts";
import { timeBefore } from "../words/times.ts";

export type ListOptions = {
  readonly limit: string;
  readonly agent?: string;
  readonly session?: string;
  readonly since?: string;
  readonly verdict?: string;
  readonly outcome?: string;
  readonly programs?: boolean;
  readonly json?: boolean;
};

/** The most that the broker answers at once. */
const MOST_A_PAGE = 1000;

/** As many spans as are asked for: a page of the broker may hold fewer, and say where to go on. */
export async function listSpans(terminal: Terminal, options: ListOptions): Promise<number> {
  const wanted = Number(options.limit);
  if (!/^\d+$/.test(options.limit) || wanted < 1)
    throw new Complaint(`Cannot list '${options.limit}' spans: a whole number from 1 is wanted`);
  const spans: Span[] = [];
  let reply: SpansReply;
  let cursor: string | null = null;
  do {
    reply = await ask<SpansReply>(terminal, `/v1/spans?${queryOf(options, wanted - spans.length, cursor)}`);
    spans.push(...reply.spans);
    cursor = reply.next_cursor;
  } while (cursor !== null && spans.length < wanted);
  if (options.json === true) printJson(terminal, { ...reply, spans });
  else for (const span of spans) printLine(terminal, spanLine(terminal, span));
  return 0;
}

function queryOf(options: ListOptions, left: number, cursor: string | null): string {
  const { agent, session, verdict, outcome, programs, since } = options;
  const from = since === undefined ? undefined : timeBefore(since, Date.now());
  const wanted = {
    limit: String(Math.min(left, MOST_A_PAGE)),
    agent_id: agent,
    session_id: session,
    verdict,
    outcome,
    programs: programs === true ? "true" : undefined,
    since: from,
    cursor: cursor ?? undefined,
  };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(wanted)) if (value !== undefined) query.set(name, value);
  return query.toString();
}
