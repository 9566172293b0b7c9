/** Traces for tests: made by the real code, in a folder of their own. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Follower } from "../../../broker/spans/follower.ts";
import { type TraceLimits, traceLimits } from "../../../broker/spans/retention.ts";
import { type SpanRecord, Trace, type TraceOptions } from "../../../broker/spans/trace.ts";
import type { ProgramEvent } from "../../../world/model/programs.ts";

export type TestTrace = {
  readonly folder: string;
  readonly path: string;
  /** What the trace told of. */
  readonly faults: string[];
  readonly open: (options?: OpenOptions) => Promise<Trace>;
  /** Names of its files, oldest first; the live one last. */
  readonly files: () => readonly string[];
  readonly remove: () => void;
};

export type OpenOptions = Omit<TraceOptions, "limits"> & {
  readonly limits?: Partial<TraceLimits>;
  readonly followers?: readonly Follower[];
};

export function testTrace(): TestTrace {
  const folder = mkdtempSync(join(tmpdir(), "substrate-trace-"));
  const path = join(folder, "trace.jsonl");
  const faults: string[] = [];
  return {
    folder,
    path,
    faults,
    open: ({ limits, followers = [], ...options } = {}) =>
      Trace.open(path, join(folder, "db"), false, (what) => faults.push(what), followers, {
        ...options,
        limits: () => ({ ...traceLimits({}), ...limits }),
      }),
    files: () => {
      const names = readdirSync(folder).filter((name) => /^trace.*\.jsonl$/.test(name));
      return [
        ...names.filter((name) => name !== "trace.jsonl").sort(),
        ...names.filter((name) => name === "trace.jsonl"),
      ];
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

export function record(span: string, change: Partial<SpanRecord> = {}): SpanRecord {
  return {
    ts: "2026-01-01T00:00:00.000Z",
    event_type: "command_start",
    session_id: "ses_1",
    span_id: span,
    parent_span: null,
    component: "world",
    world_id: null,
    policy_id: "default",
    policy_hash: `sha256:${"0".repeat(64)}`,
    policy_commit: null,
    agent_id: "ann",
    cwd: "/work",
    cmd: "true",
    exit: null,
    signal: null,
    timed_out: false,
    outcome: null,
    duration_ms: null,
    scopes_used: [],
    fs_diff: null,
    usage: null,
    isolation: null,
    decision: null,
    stdout_sha256: null,
    stderr_sha256: null,
    redacted: [],
    replayable: true,
    replay_context: null,
    ...change,
  };
}

/** A command from its first line to its last. */
export async function ranSpan(trace: Trace, span: string, change: Partial<SpanRecord> = {}): Promise<void> {
  await trace.start(record(span, change));
  trace.close(endOf(span, change));
}

export function endOf(span: string, change: Partial<SpanRecord> = {}): SpanRecord {
  return record(span, { event_type: "command_complete", outcome: "ended", exit: 0, ...change });
}

// What a world tells of programs, for tests that make it up.

export type { Span } from "../../../schemas/generated/types.ts";
export { validateSpan } from "../../../schemas/generated/validators.js";

/** 2026-01-31T12:00:00Z, in nanoseconds. */
export const NOW = 1_769_860_800_000_000_000n;

type Started = Extract<ProgramEvent, { kind: "started" }>;
type Ended = Extract<ProgramEvent, { kind: "ended" }>;

export function started(number: number, parent: number, argv: readonly string[], cut = false): Started {
  const path = `/usr/bin/${argv[0] ?? ""}`;
  return { kind: "started", number, parent, pid: 10 + number, path, argv, cut, at: NOW };
}

export function refused(parent: number, argv: readonly string[]): ProgramEvent {
  return { kind: "refused", parent, pid: 99, path: `/usr/bin/${argv[0] ?? ""}`, argv, cut: false, at: NOW };
}

export function ended(
  number: number,
  how: Partial<Pick<Ended, "code" | "signal" | "replaced">> & { readonly after?: bigint },
): Ended {
  const { code = null, signal = null, replaced = false, after = 1_000_000n } = how;
  return { kind: "ended", number, at: NOW + after, code, signal, replaced };
}
