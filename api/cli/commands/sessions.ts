/** `substrate trace sessions` and `trace --session KEY`: sessions as agents name them. */
import type { AgentSession, SessionsReply, Span } from "../../../schemas/generated/types.ts";
import { ask } from "../terminal/replies.ts";
import { printRows } from "../terminal/rows.ts";
import { Complaint, harmlessLine, printJson, printLine, type Terminal } from "../terminal/terminal.ts";
import { sessionWords } from "../words/session-words.ts";
import { printSpan } from "../words/span-lines.ts";
import { newestSpans, sessionsOf } from "./trace.ts";

export type SessionsOptions = { readonly limit: string; readonly agent?: string; readonly json?: boolean };

export async function listSessions(terminal: Terminal, options: SessionsOptions): Promise<number> {
  const { agent, limit } = options;
  const query = new URLSearchParams({ limit, ...(agent === undefined ? {} : { agent_id: agent }) });
  const reply = await ask<SessionsReply>(terminal, `/v1/sessions?${query.toString()}`);
  if (options.json === true) printJson(terminal, reply);
  else for (const session of reply.sessions) printRows(terminal, wordsOf(session));
  return 0;
}

function wordsOf(session: AgentSession): string {
  return `${harmlessLine(session.agent_id)}  ${sessionWords(session, Date.now())}`;
}

/** The newest spans of a session that are shown. */
const MOST_SPANS = 1000;

/** Shows a session: its spans from the oldest on, each below its parent. */
export async function showSession(
  terminal: Terminal,
  key: string,
  { json }: { readonly json?: boolean },
): Promise<number> {
  const sessions = await sessionsOf(terminal, key);
  if (sessions.length === 0)
    throw new Complaint(`Unknown session '${harmlessLine(key)}': 'substrate trace sessions' lists them`);
  const shown = [];
  for (const session of sessions) shown.push({ session, ...(await spansOf(terminal, session)) });
  if (json === true) printJson(terminal, { sessions: shown });
  else for (const each of shown) print(terminal, each);
  return 0;
}

type Shown = { readonly session: AgentSession; readonly spans: readonly Span[]; readonly is_cut: boolean };

async function spansOf(
  terminal: Terminal,
  { session_ids: ids }: AgentSession,
): Promise<Omit<Shown, "session">> {
  const pages = [];
  for (const id of ids) pages.push(await newestSpans(terminal, { session: id }, MOST_SPANS));
  const spans = pages.flatMap((page) => page.spans).sort((one, other) => one.seq - other.seq);
  const isCut = spans.length > MOST_SPANS || pages.some((page) => page.next_cursor !== null);
  return { spans: spans.slice(-MOST_SPANS), is_cut: isCut };
}

function print(terminal: Terminal, { session, spans, is_cut: isCut }: Shown): void {
  printRows(terminal, wordsOf(session));
  if (isCut)
    printLine(terminal, `… only the newest ${MOST_SPANS} spans: 'substrate trace list --session' takes -n`);
  const below = new Map<string, Span[]>(spans.map((span) => [span.span_id, []]));
  const roots: Span[] = [];
  for (const span of spans) (below.get(span.parent_span ?? "") ?? roots).push(span);
  const printed = (span: Span, depth: number): void => {
    printSpan(terminal, span, "  ".repeat(depth));
    for (const child of below.get(span.span_id) ?? []) printed(child, depth + 1);
  };
  for (const root of roots) printed(root, 1);
}
