/** The lists of spans, newest first: all, of one agent, of one session, and of what is rare. */
import type { Database } from "lmdb";
import type { Span } from "../../schemas/generated/types.ts";
import type { SpanEntry } from "./span-entry.ts";

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
  /** Whose spans the asker may see; absent: everybody's. What it may not see takes no place of a page. */
  readonly sees?: ((agent: string | null) => boolean) | undefined;
};

export type SpanRow = { readonly seq: number; readonly span: string };

/** `next` is where to go on; null when there is no more. */
export type SpanRows = { readonly rows: readonly SpanRow[]; readonly next: number | null };

export type SpanPage = { readonly spans: readonly Span[]; readonly next: number | null };

export type OrderKey = [scope: string, seq: number];
export type Order = Database<string, OrderKey>;

/** Entries that one call looks at: a page may hold fewer spans than asked for, and `next` leads on. */
const MOST_LOOKS = 400;

/** The outcome of a command that has none yet. */
export const RUNNING = "running";

/** What nearly every span says: who asks for it finds enough in the list of all, and it needs no list of its own. */
const USUAL: ReadonlySet<string> = new Set(["allow", "ended", RUNNING]);

/** What ran longer than this has a list of its own. */
const LONG_MS = 60_000;
const LONG = "long";

/** Programs that commands started: a build has thousands, and who looks for a command looks for none of them. */
const PROGRAMS = "programs";

/** Each span is in one of these. */
export const EVERY_SCOPE: readonly string[] = ["*", PROGRAMS];

/** No command runs longer than a day (CONTRACT §3), so what began before that cannot have ended since. */
const LONGEST_MS = 25 * 60 * 60 * 1000;

/** Puts a span into the lists that it stands in. */
export function putRows(order: Order, entry: SpanEntry, span: string): readonly Promise<boolean>[] {
  return scopesOf(entry).map((scope) => order.put([scope, entry.seq], span));
}

/** The same for those that it stands in because of how it ended. */
export function putEndRows(order: Order, entry: SpanEntry, span: string): readonly Promise<boolean>[] {
  return endScopes(entry).map((scope) => order.put([scope, entry.seq], span));
}

export function removeRows(order: Order, entry: SpanEntry): readonly Promise<boolean>[] {
  return scopesOf(entry).map((scope) => order.remove([scope, entry.seq]));
}

function scopesOf(entry: SpanEntry): readonly string[] {
  const { agent, session, verdict } = entry;
  if (entry.isProgram) return [PROGRAMS, ...endScopes(entry)];
  return [
    "*",
    ...(agent === null ? [] : [`agent ${agent}`]),
    ...(session === null ? [] : [`session ${session}`]),
    ...(verdict === null || USUAL.has(verdict) ? [] : [`verdict ${verdict}`]),
    ...endScopes(entry),
  ];
}

function endScopes({ outcome, ran, isProgram }: SpanEntry): readonly string[] {
  return [
    ...(isProgram || outcome === null || USUAL.has(outcome) ? [] : [`outcome ${outcome}`]),
    ...(ran > LONG_MS ? [LONG] : []),
  ];
}

/** The shortest list that holds all that is asked for. */
function scopeOf({ agent, session, verdict, outcome, programs }: SpanQuery): string {
  if (programs === true) return PROGRAMS;
  if (outcome !== undefined && !USUAL.has(outcome)) return `outcome ${outcome}`;
  if (verdict !== undefined && !USUAL.has(verdict)) return `verdict ${verdict}`;
  if (session !== undefined) return `session ${session}`;
  return agent === undefined ? "*" : `agent ${agent}`;
}

/** Rows that match, out of `fresh` and of what is stored, newest first. What runs is all in `fresh`. */
export function page(
  order: Order,
  query: SpanQuery,
  fresh: readonly SpanRow[],
  find: (span: string) => SpanEntry | undefined,
): SpanRows {
  const rows: SpanRow[] = [];
  let looks = 0;
  for (const { row, entry } of candidates(order, query, fresh, find)) {
    looks += 1;
    // A row whose span was listed anew elsewhere is left over.
    if (entry?.seq === row.seq && matches(entry, query)) rows.push(row);
    if (rows.length === query.limit || looks === MOST_LOOKS) return { rows, next: row.seq };
  }
  return { rows, next: null };
}

type Candidate = { readonly row: SpanRow; readonly entry: SpanEntry | undefined };

/** Of what began well before the wanted time only what ran for long can have ended in it. */
function* candidates(
  order: Order,
  query: SpanQuery,
  fresh: readonly SpanRow[],
  find: (span: string) => SpanEntry | undefined,
): Generator<Candidate> {
  const { since = Number.NEGATIVE_INFINITY, before = Number.MAX_SAFE_INTEGER } = query;
  const scope = query.outcome === RUNNING ? undefined : scopeOf(query);
  let border: number | undefined;
  for (const row of inTurn(order, scope, before, fresh)) {
    const entry = find(row.span);
    border = row.seq + 1;
    if (entry !== undefined && begunAt(entry) < since - LONG_MS) break;
    yield { row, entry };
    border = undefined;
  }
  if (border === undefined || scope === undefined) return;
  const long = fresh.filter(({ span }) => (find(span)?.ran ?? 0) > LONG_MS);
  for (const row of inTurn(order, LONG, border, long)) {
    const entry = find(row.span);
    if (entry !== undefined && begunAt(entry) < since - LONGEST_MS) return;
    yield { row, entry };
  }
}

/** Of commands that may run still those that do, newest first. */
export function runningRows(
  spans: Iterable<string>,
  find: (span: string) => SpanEntry | undefined,
): readonly SpanRow[] {
  const rows: SpanRow[] = [];
  for (const span of spans) {
    const entry = find(span);
    if (entry?.outcome === RUNNING) rows.push({ seq: entry.seq, span });
  }
  return rows.sort((one, other) => other.seq - one.seq);
}

/** Those of `fresh` and of a stored list, newest first; one that is in both comes once. */
function* inTurn(
  order: Order,
  scope: string | undefined,
  before: number,
  fresh: readonly SpanRow[],
): Generator<SpanRow> {
  let last = before;
  const stored = scope === undefined ? [][Symbol.iterator]() : storedRows(order, scope, before);
  let next = stored.next();
  for (const row of fresh) {
    if (row.seq >= before) continue;
    for (; next.done !== true && next.value.seq > row.seq; next = stored.next())
      if (next.value.seq < last) yield next.value;
    yield row;
    last = row.seq;
  }
  for (; next.done !== true; next = stored.next()) if (next.value.seq < last) yield next.value;
}

function* storedRows(order: Order, scope: string, before: number): Generator<SpanRow, undefined> {
  for (const { key, value } of order.getRange({ start: [scope, before - 1], end: [scope, 0], reverse: true }))
    yield { seq: key[1], span: value };
  return undefined;
}

function begunAt({ at, ran }: SpanEntry): number {
  return at - ran;
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
