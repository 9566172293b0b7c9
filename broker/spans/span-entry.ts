/** The index entry of a span, stored as an array: with field names, a million entries would take twice the space. */
import type { SpanRecord } from "./trace.ts";
import type { Extent } from "./trace-log.ts";

/** The outcome of a running command. */
export const RUNNING = "running";

export type SpanEntry = {
  /** Number of the span's first line, used as its key in lists. */
  readonly seq: number;
  readonly agent: string | null;
  readonly session: string | null;
  readonly parent: string | null;
  /** Whether the span is a program started by a command: programs are numerous and have their own list. */
  readonly isProgram: boolean;
  readonly verdict: string | null;
  /** `running` for a running command; null for spans without an outcome. */
  readonly outcome: string | null;
  /** Time of the last line, in milliseconds since 1970. */
  readonly at: number;
  /** Milliseconds between the first and the last line. */
  readonly ran: number;
  readonly start: Extent;
  /** Missing while the command runs, and for spans with a single line. */
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

/** Longest valid id. LMDB throws at keys of more than 1,978 bytes, and callers may send any id. */
export const MAX_ID = 128;

/** `ends`: whether the line is the span's only line. */
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

/** Whether the span is of a command that ran or runs: refusals and events have one line, changes no verdict. */
export function isCommand(entry: SpanEntry | undefined): boolean {
  if (entry === undefined || entry.isProgram || entry.verdict === null) return false;
  return entry.end !== undefined || entry.outcome === RUNNING;
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
