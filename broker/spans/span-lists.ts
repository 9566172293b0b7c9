/** Lists of spans, newest first: all commands, the commands of an agent or a session, and the programs started by commands. */
import type { Database } from "lmdb";
import type { Span } from "../../schemas/generated/types.ts";
import { RUNNING, type SpanEntry } from "./span-entry.ts";

export type SpanQuery = {
  readonly agent: string | undefined;
  readonly session: string | undefined;
  readonly verdict?: string | undefined;
  /** `running` for commands still running. */
  readonly outcome?: string | undefined;
  /** Excludes spans whose last line is older, in milliseconds since 1970. */
  readonly since?: number | undefined;
  /** Only spans with a smaller sequence number: the cursor of the last page. */
  readonly before: number | undefined;
  readonly limit: number;
  /** Lists programs started by commands, instead of all other spans. */
  readonly programs?: boolean | undefined;
  /** Tests whether the caller may see an agent's spans; absent for all agents. Invisible spans take no place on a page. */
  readonly sees?: ((agent: string | null) => boolean) | undefined;
};

export type SpanRow = { readonly seq: number; readonly span: string };

/** `next` is the cursor of the next page; null on the last page. */
export type SpanRows = { readonly rows: readonly SpanRow[]; readonly next: number | null };

export type SpanPage = { readonly spans: readonly Span[]; readonly next: number | null };

export type ListKey = [list: string, seq: number];
export type Lists = Database<string, ListKey>;

type Find = (span: string) => SpanEntry | undefined;

/** Bound on entries examined per call, some 10 ms: a page may hold fewer spans than requested, and `next` continues. */
const MOST_LOOKS = 2000;

const COMMANDS = "*";

/** A separate list for started programs: a build starts thousands, which would hide its command. */
const PROGRAMS = "programs";

/** Each span is in exactly one of these lists. */
export const EVERY_SPAN: readonly string[] = [COMMANDS, PROGRAMS];

/** Commands run at most a day, so an older command cannot have ended in the requested time. */
const LONGEST_MS = 25 * 60 * 60 * 1000;

export function putRows(lists: Lists, entry: SpanEntry, span: string): readonly Promise<boolean>[] {
  return listsOf(entry).map((list) => lists.put([list, entry.seq], span));
}

export function removeRows(lists: Lists, entry: SpanEntry): readonly Promise<boolean>[] {
  return listsOf(entry).map((list) => lists.remove([list, entry.seq]));
}

function listsOf({ agent, session, isProgram }: SpanEntry): readonly string[] {
  if (isProgram) return [PROGRAMS];
  return [
    COMMANDS,
    ...(agent === null ? [] : [`agent ${agent}`]),
    ...(session === null ? [] : [`session ${session}`]),
  ];
}

/** Chooses the shortest list containing every matching span. */
export function listOf({ agent, session, programs }: SpanQuery): string {
  if (programs === true) return PROGRAMS;
  if (session !== undefined) return `session ${session}`;
  return agent === undefined ? COMMANDS : `agent ${agent}`;
}

/** Returns the matching rows. `rows`: newest first, starting before {@link SpanQuery.before}. */
export function page(rows: Iterable<SpanRow>, query: SpanQuery, find: Find): SpanRows {
  const { since = Number.NEGATIVE_INFINITY, limit } = query;
  const found: SpanRow[] = [];
  let looks = 0;
  for (const row of rows) {
    const entry = find(row.span);
    if (entry !== undefined && entry.at - entry.ran < since - LONGEST_MS) break;
    looks += 1;
    if (entry?.seq === row.seq && matches(entry, query)) found.push(row);
    if (found.length === limit || looks === MOST_LOOKS) return { rows: found, next: row.seq };
  }
  return { rows: found, next: null };
}

/** Merges the rows of `fresh` and a stored list, newest first, without duplicates. */
export function* rowsBefore(
  lists: Lists,
  list: string,
  before: number,
  fresh: readonly SpanRow[],
): Generator<SpanRow> {
  const waiting = fresh.filter(({ seq }) => seq < before);
  const stored = lists.getRange({ start: [list, before - 1], end: [list, 0], reverse: true });
  let at = 0;
  let last = before;
  for (const { key, value: span } of stored) {
    const seq = key[1];
    for (let row = waiting[at]; row !== undefined && row.seq >= seq; row = waiting[at]) {
      yield row;
      last = row.seq;
      at += 1;
    }
    if (seq < last) yield { seq, span };
  }
  yield* waiting.slice(at);
}

export function newestFirst(rows: readonly SpanRow[]): readonly SpanRow[] {
  return [...rows].sort((one, other) => other.seq - one.seq);
}

export function isRunning({ outcome }: SpanQuery): boolean {
  return outcome === RUNNING;
}

function matches(entry: SpanEntry, query: SpanQuery): boolean {
  const { agent, session, verdict, outcome, since, programs, sees } = query;
  return (
    entry.isProgram === (programs ?? false) &&
    (sees === undefined || sees(entry.agent)) &&
    (agent === undefined || entry.agent === agent) &&
    (session === undefined || entry.session === session) &&
    (verdict === undefined || entry.verdict === verdict) &&
    (outcome === undefined || entry.outcome === outcome) &&
    (since === undefined || entry.at >= since)
  );
}
