/** The lines of one program that a command started. */
import { constants } from "node:os";
import type { ProgramEvent } from "../../world/backend.ts";
import { type KnownSecrets, redact, redactWords } from "../secrets/redact.ts";
import { eventSpan } from "../spans/event-span.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { withoutCutEnds } from "./cut-words.ts";

export type Started = Extract<ProgramEvent, { kind: "started" }>;
export type Refused = Extract<ProgramEvent, { kind: "refused" }>;
export type Ended = Extract<ProgramEvent, { kind: "ended" }>;

const SIGNALS: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name]),
);

/** What the lines of all programs of a command have in common. */
export function commonOf(command: SpanRecord): SpanRecord {
  const { session_id, world_id, policy_id, policy_hash, policy_commit, agent_id } = command;
  const whose = { session_id, world_id, policy_id, policy_hash, policy_commit, agent_id };
  return eventSpan({ event_type: "exec", component: "world", signal: null, ...whose });
}

/** The line of a start: the only one that a refused program has, the first of one that still runs when it is written. */
export function startedProgram(
  common: SpanRecord,
  known: KnownSecrets,
  event: Started | Refused,
  ids: Pick<SpanRecord, "span_id" | "parent_span">,
): SpanRecord {
  const words = event.cut ? withoutCutEnds(event.argv, known) : event.argv;
  const { text: cmd, redacted } = redactWords(words, "cmd", known);
  const path = redact(event.path, "program", known);
  return {
    ...common,
    ...ids,
    ts: timeOf(event.at),
    cmd,
    outcome: event.kind === "refused" ? "refused" : null,
    redacted: [...redacted, ...path.redacted],
    program: {
      path: path.text,
      pid: event.pid,
      started_at: preciseTimeOf(event.at),
      cut: event.cut,
      replaced: false,
    },
  };
}

/** The line of an end, and the only one of a program that was over before its first was written. */
export function endedProgram(started: SpanRecord, startedAt: bigint, event: Ended): SpanRecord {
  const { at, code, signal, replaced } = event;
  const took = Math.max(0, Number((at - startedAt) / 1000n) / 1000);
  const how = code !== null || signal === null ? { exit: code } : signalled(signal);
  return {
    ...started,
    ...how,
    ts: timeOf(at),
    outcome: "ended",
    duration_ms: took,
    ...(replaced && started.program !== undefined ? { program: { ...started.program, replaced } } : {}),
  };
}

/** The same where nobody told of the end: its world was gone before. */
export function lostProgram(started: SpanRecord): SpanRecord {
  return { ...started, ts: new Date().toISOString(), outcome: "lost" };
}

/** As a shell says it, and as spans of commands do. */
function signalled(signal: number): Pick<SpanRecord, "exit" | "signal"> {
  return { exit: 128 + signal, signal: SIGNALS.get(signal) ?? `SIG${signal}` };
}

/** Of a clock that is not the broker's. Throws a RangeError for what no date can say. */
function timeOf(nanoseconds: bigint): string {
  return new Date(Number(nanoseconds / 1_000_000n)).toISOString();
}

/** To the microsecond: most programs take less than a few milliseconds. */
function preciseTimeOf(nanoseconds: bigint): string {
  const micros = String((nanoseconds / 1000n) % 1000n).padStart(3, "0");
  return `${timeOf(nanoseconds).slice(0, -1)}${micros}Z`;
}
