import { setImmediate as turn } from "node:timers/promises";
import type { ProgramCounts } from "../../schemas/generated/types.ts";
import type { CommandRun, ProgramEvent } from "../../world/backend.ts";
import { newId } from "../model/ids.ts";
import { type KnownSecrets, redact, redactWords } from "../secrets/redact.ts";
import type { SpanRecord, Trace } from "../spans/trace.ts";
import { constants } from "node:os";
import { eventSpan } from "../spans/event-span.ts";
import { withoutCutEnds } from "./cut-words.ts";

/** Bounds per command: programs with spans, and characters of their paths and words; further programs are counted. */
const MAX_PROGRAMS = 100_000;
const MAX_TEXT = 64 * 1024 * 1024;

/** How long a start waits for its end, so a short program has a single line. */
const HOLD_MS = 50;

/** Work per turn of the event loop: about two milliseconds. */
const EVENTS_A_TURN = 200;
const LINES_A_TURN = 32;

/** Retry interval on a full disk. */
const AGAIN_MS = 1000;

/** A running program, or one whose end is not yet written. */
type Live = {
  readonly startedAt: bigint;
  /** The first or only line, once made. */
  first: SpanRecord | undefined;
  end: Ended | "unseen" | undefined;
};

type Line = {
  /** Makes the line when its turn comes; called again after a failed write. */
  readonly make: () => SpanRecord;
  /** Whether this is a program's second line. */
  readonly closes: boolean;
};

type Ids = Pick<SpanRecord, "span_id" | "parent_span">;

export type ProgramRecorderOptions = {
  readonly trace: Pick<Trace, "addAll" | "onFault">;
  /** The command's `command_start` line. */
  readonly command: SpanRecord;
  readonly known: KnownSecrets;
  /** Smaller bounds, for tests. */
  readonly limits?: { readonly programs: number; readonly text: number };
};

/**
 * Writes the spans of a command's programs below the command's span, in the order of the reports: a parent's line
 * always precedes its children's, even in a truncated trace.
 */
export class ProgramRecorder {
  readonly #options: ProgramRecorderOptions;
  readonly #common: SpanRecord;
  readonly #ids = new Map<number, string>();
  readonly #live = new Map<number, Live>();
  readonly #told: ProgramEvent[][] = [];
  readonly #lines: Line[] = [];
  #recorded = 0;
  #leftOut = 0;
  #text = 0;
  /** Some lines were dropped: later lines could name a parent without a line. */
  #isBroken = false;
  #hasFailed = false;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> | undefined;

  constructor(options: ProgramRecorderOptions) {
    this.#options = options;
    this.#common = commonOf(options.command);
  }

  /** Handler for `ExecRequest.onPrograms`. */
  readonly add = (events: readonly ProgramEvent[], untold: number): void => {
    this.#leftOut += untold;
    if (events.length === 0) return;
    this.#told.push([...events]);
    this.#schedule(HOLD_MS);
  };

  /** Undefined when no program was reported. */
  get counts(): ProgramCounts | undefined {
    const counts = { recorded: this.#recorded, left_out: this.#leftOut };
    return counts.recorded + counts.left_out === 0 ? undefined : counts;
  }

  /**
   * Settles when all reported programs are written, or dropped on a full disk. With `kept`, recording goes on until the
   * kept processes end; otherwise ends not reported by now never come.
   */
  async finish(run: Pick<CommandRun, "closed">, kept: boolean): Promise<void> {
    await this.#settle(!kept);
    if (kept) void run.closed.then(() => this.#settle(true));
  }

  async #settle(over: boolean): Promise<void> {
    await this.#write();
    if (over) this.#closeAll();
    await this.#write();
    if (this.#hasFailed) this.#giveUp();
  }

  get #hasMore(): boolean {
    return this.#told.length > 0 || this.#lines.length > 0;
  }

  #schedule(after: number): void {
    if (this.#writing !== undefined) return;
    this.#timer ??= setTimeout(() => void this.#write(), after).unref();
  }

  /** Starts writing, or joins the pending write. Settles early when the kernel refuses. Never rejects. */
  #write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#hasFailed = false;
    this.#writing ??= this.#writeAll()
      .catch((error: unknown) => this.#refused(error))
      .finally(() => {
        this.#writing = undefined;
        if (this.#hasMore) this.#schedule(this.#hasFailed ? AGAIN_MS : HOLD_MS);
      });
    return this.#writing;
  }

  async #writeAll(): Promise<void> {
    for (;;) {
      this.#takeIn();
      if (this.#told.length === 0) this.#writeSome();
      if (!this.#hasMore) return;
      await turn();
    }
  }

  #takeIn(): void {
    let left = EVENTS_A_TURN;
    for (let batch = this.#told[0]; batch !== undefined && left > 0; batch = this.#told[0]) {
      const events = batch.splice(0, left);
      left -= events.length;
      for (const event of events) this.#note(event);
      if (batch.length === 0) this.#told.shift();
    }
  }

  #writeSome(): void {
    const lines = this.#lines.slice(0, LINES_A_TURN).map(({ make }) => make());
    if (lines.length === 0) return;
    this.#options.trace.addAll(lines);
    this.#lines.splice(0, lines.length);
  }

  #note(event: ProgramEvent): void {
    if (event.kind === "ended") return this.#noteEnd(event.number, event);
    if (!this.#hasRoomFor(event)) {
      this.#leftOut += 1;
      return;
    }
    this.#recorded += 1;
    const parent = this.#ids.get(event.parent) ?? this.#options.command.span_id;
    const ids = { span_id: newId("spn"), parent_span: parent };
    if (event.kind === "refused") this.#push(() => this.#startOf(event, ids));
    else this.#noteStart(event, ids);
  }

  #noteStart(event: Started, ids: Ids): void {
    const live: Live = { startedAt: event.at, first: undefined, end: undefined };
    this.#ids.set(event.number, ids.span_id);
    this.#live.set(event.number, live);
    this.#push(() => {
      live.first ??= lastOf(this.#startOf(event, ids), live);
      return live.first;
    });
  }

  #noteEnd(number: number, end: Ended): void {
    const live = this.#live.get(number);
    if (live === undefined) return;
    this.#live.delete(number);
    this.#close(live, end);
  }

  #push(make: Line["make"], closes = false): void {
    this.#lines.push({ make, closes });
  }

  #startOf(event: Started | Refused, ids: Ids): SpanRecord {
    return startedProgram(this.#common, this.#options.known, event, ids);
  }

  #hasRoomFor({ path, argv }: Started | Refused): boolean {
    const { programs, text } = this.#options.limits ?? { programs: MAX_PROGRAMS, text: MAX_TEXT };
    if (this.#isBroken || this.#recorded >= programs || this.#text >= text) return false;
    this.#text += argv.reduce((sum, word) => sum + word.length, path.length);
    return true;
  }

  #closeAll(): void {
    for (const live of this.#live.values()) this.#close(live, "unseen");
    this.#live.clear();
  }

  /** Ends a program; a line not yet made becomes the program's only line. */
  #close(live: Live, end: Ended | "unseen"): void {
    const { first } = live;
    live.end = end;
    if (first !== undefined) this.#push(() => lastOf(first, live), true);
  }

  /** A kernel error may be temporary, such as a full disk; any other error is permanent. */
  #refused(error: unknown): void {
    const { span_id: id } = this.#options.command;
    this.#hasFailed = true;
    this.#options.trace.onFault(`${this.#lines.length} lines of programs of ${id} cannot be written`, error);
    if (!(error instanceof Error && "syscall" in error)) this.#giveUp();
  }

  /** Drops all pending lines. A program left with only its first line is closed as `lost` by the next broker. */
  #giveUp(): void {
    const lines = this.#lines.filter(({ closes }) => !closes).length;
    const starts = this.#told.flat().filter(({ kind }) => kind !== "ended").length;
    this.#isBroken = true;
    this.#recorded -= lines;
    this.#leftOut += lines + starts;
    this.#lines.length = 0;
    this.#told.length = 0;
    this.#live.clear();
  }
}

/** Makes the line of the latest known state. */
function lastOf(started: SpanRecord, { startedAt, end }: Live): SpanRecord {
  if (end === undefined) return started;
  return end === "unseen" ? lostProgram(started) : endedProgram(started, startedAt, end);
}

type Started = Extract<ProgramEvent, { kind: "started" }>;
type Refused = Extract<ProgramEvent, { kind: "refused" }>;
type Ended = Extract<ProgramEvent, { kind: "ended" }>;

const SIGNALS: ReadonlyMap<number, string> = new Map(
  Object.entries(constants.signals).map(([name, number]) => [number, name]),
);

/** Fields common to all program lines of a command. */
function commonOf(command: SpanRecord): SpanRecord {
  const { session_id, world_id, policy_id, policy_hash, policy_commit, agent_id } = command;
  const whose = { session_id, world_id, policy_id, policy_hash, policy_commit, agent_id };
  return eventSpan({ event_type: "exec", component: "world", signal: null, ...whose });
}

/** Makes the line of a start: the only line of a refused program, the first of a program still running when written. */
function startedProgram(
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

/** Makes the line of an end: the only line of a program that ended before its first line was written. */
function endedProgram(started: SpanRecord, startedAt: bigint, event: Ended): SpanRecord {
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

/** Makes the line of an end never reported, because the world was gone. */
function lostProgram(started: SpanRecord): SpanRecord {
  return { ...started, ts: new Date().toISOString(), outcome: "lost" };
}

/** Encodes a signal like a shell, and like the spans of commands. */
function signalled(signal: number): Pick<SpanRecord, "exit" | "signal"> {
  return { exit: 128 + signal, signal: SIGNALS.get(signal) ?? `SIG${signal}` };
}

/** Formats a time of the world's clock. Throws a RangeError outside the range of dates. */
function timeOf(nanoseconds: bigint): string {
  return new Date(Number(nanoseconds / 1_000_000n)).toISOString();
}

/** Formats to the microsecond: most programs take less than a few milliseconds. */
function preciseTimeOf(nanoseconds: bigint): string {
  const micros = String((nanoseconds / 1000n) % 1000n).padStart(3, "0");
  return `${timeOf(nanoseconds).slice(0, -1)}${micros}Z`;
}
