/** What the index keeps of a span: as a list, since a million of them with their fields' names would be twice as large. */
import type { SpanRecord } from "./trace.ts";
import type { Extent } from "./trace-log.ts";

/** The outcome of a command that has none yet. */
export const RUNNING = "running";

export type SpanEntry = {
  /** Number of the line by which the span is listed: its first. */
  readonly seq: number;
  readonly agent: string | null;
  readonly session: string | null;
  readonly parent: string | null;
  /** A program that a command started: there are so many that they have a list of their own. */
  readonly isProgram: boolean;
  readonly verdict: string | null;
  /** `running` while the command does; null where there is none. */
  readonly outcome: string | null;
  /** When its last line was written, in milliseconds since 1970. */
  readonly at: number;
  /** Milliseconds between its first line and its last. */
  readonly ran: number;
  readonly start: Extent;
  /** Missing while the command runs, and where one line is all. */
  readonly end?: Extent;
};

export type StoredEntry = readonly [
  seq: number,
  agent: string | null,
  session: string | null,
  parent: string | null,
  verdict: string | null,
  outcome: string | null,
  at: number,
  ran: number,
  isProgram: 0 | 1,
  ...extents: number[],
];

/** No id is longer; LMDB throws at keys of more than 1,978 bytes, and a caller may name whatever it likes. */
export const MAX_ID = 128;

/** `ends` says that no second line will follow. */
export function entryOf(record: SpanRecord, seq: number, start: Extent, ends: boolean): SpanEntry {
  const { agent_id: agent, session_id: session, parent_span: parent } = record;
  return {
    seq,
    agent,
    session,
    parent: parent !== null && parent.length > MAX_ID ? null : parent,
    isProgram: record.event_type === "exec",
    verdict: record.decision?.verdict ?? null,
    outcome: ends ? (record.outcome ?? null) : RUNNING,
    at: Date.parse(record.ts),
    ran: 0,
    start,
  };
}

export function endedEntry(entry: SpanEntry, record: SpanRecord, end: Extent): SpanEntry {
  const at = Date.parse(record.ts);
  return { ...entry, outcome: record.outcome ?? null, at, ran: Math.max(0, at - entry.at), end };
}

export function stored(entry: SpanEntry): StoredEntry {
  const { seq, agent, session, parent, isProgram, verdict, outcome, at, ran, start, end } = entry;
  const extents = end === undefined ? [start] : [start, end];
  const numbers = extents.flatMap(({ file, offset, length }) => [file, offset, length]);
  return [seq, agent, session, parent, verdict, outcome, at, ran, isProgram ? 1 : 0, ...numbers];
}

export function read(row: StoredEntry): SpanEntry {
  const [seq, agent, session, parent, verdict, outcome, at, ran, program, ...numbers] = row;
  const start = extentAt(numbers, 0);
  const entry = { seq, agent, session, parent, isProgram: program === 1, verdict, outcome, at, ran, start };
  return numbers.length > 3 ? { ...entry, end: extentAt(numbers, 3) } : entry;
}

function extentAt(numbers: readonly number[], from: number): Extent {
  return { file: numbers[from] ?? 0, offset: numbers[from + 1] ?? 0, length: numbers[from + 2] ?? 0 };
}
