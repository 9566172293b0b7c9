/** The lists of spans, newest first: all commands, those of one agent, those of one session, and the programs they started. */
import type { Database } from "lmdb";
import type { Span } from "../../schemas/generated/types.ts";
import { RUNNING, type SpanEntry } from "./span-entry.ts";

export type SpanQuery = {
  readonly agent: string | undefined;
  readonly session: string | undefined;
  readonly verdict?: string | undefined;
  /** `running` for commands that have not ended. */
  readonly outcome?: string | undefined;
  /** Only spans whose last line is not older, in milliseconds since 1970. */
  readonly since?: number | undefined;
  /** Only spans with a smaller sequence number: where the last page ended. */
  readonly before: number | undefined;
  readonly limit: number;
  /** The programs that commands started, instead of everything else. */
  readonly programs?: boolean | undefined;
  /** Whose spans the asker may see; absent: everybody's. Others take no place of a page. */
  readonly sees?: ((agent: string | null) => boolean) | undefined;
};

export type SpanRow = { readonly seq: number; readonly span: string };

/** `next` is where to go on; null when there is no more. */
export type SpanRows = { readonly rows: readonly SpanRow[]; readonly next: number | null };

export type SpanPage = { readonly spans: readonly Span[]; readonly next: number | null };

export type ListKey = [list: string, seq: number];
export type Lists = Database<string, ListKey>;

type Find = (span: string) => SpanEntry | undefined;

/** Entries that one call looks at, some 10 ms: a page may hold fewer spans than asked for, and `next` leads on. */
const MOST_LOOKS = 2000;

const COMMANDS = "*";

/** Programs that commands started have their own list: a build starts thousands, which would hide its command. */
const PROGRAMS = "programs";

/** Each span is in one of these. */
export const EVERY_SPAN: readonly string[] = [COMMANDS, PROGRAMS];

/** No command runs longer than a day (CONTRACT §3), so a command that began before that cannot have ended since. */
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

/** The shortest list that holds every span that matches. */
export function listOf({ agent, session, programs }: SpanQuery): string {
  if (programs === true) return PROGRAMS;
  if (session !== undefined) return `session ${session}`;
  return agent === undefined ? COMMANDS : `agent ${agent}`;
}

/** The rows that match. `rows`: newest first, from {@link SpanQuery.before} on. */
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

/** The rows of `fresh` and of a stored list, newest first; a row of both comes once. */
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
