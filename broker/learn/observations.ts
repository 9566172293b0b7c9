import type { Span, Verdict } from "../../schemas/generated/types.ts";

/** A command that the policy stopped, or would have; merged by text and folder. */
export type ObservedCommand = {
  /** The span's text. */
  readonly text: string;
  /** The words of a call without a shell; undefined for a shell command. */
  readonly argv: readonly string[] | undefined;
  readonly cwd: string;
  readonly seen: Seen;
};

/** A write outside `fs.write`, refused or kept in the world, by a command started in `cwd`. */
export type ObservedWrite = { readonly path: string; readonly cwd: string; readonly seen: Seen };

/** A connection made or tried although the policy's lists do not allow it. */
export type ObservedConnection = {
  /** A name, or an address dialled directly. */
  readonly host: string;
  readonly port: number;
  /** A server accepted the connection at least once. */
  readonly reached: boolean;
  /** Why the last such connection ended; null after a regular end of both sides. */
  readonly reason: string | null;
  readonly seen: Seen;
};

/** A running command's violation of its world's rules. */
export type ObservedViolation = { readonly kind: string; readonly subject: string; readonly seen: Seen };

/** Numbers of spans without use for learning. */
export type Skipped = {
  /** The recorded command was redacted or cut, or its file is unknown: the executed command is unknown. */
  readonly redacted: number;
  /** Distinct commands or paths beyond {@link MAX_DISTINCT}. */
  readonly beyond: number;
};

export type Observed = {
  /** Number of examined spans of the policy. */
  readonly spans: number;
  readonly commands: readonly ObservedCommand[];
  readonly writes: readonly ObservedWrite[];
  readonly connections: readonly ObservedConnection[];
  readonly violations: readonly ObservedViolation[];
  readonly skipped: Skipped;
};

/** Selects spans. `since` is an ISO time. */
export type Wanted = {
  readonly policyId: string;
  readonly agent: string | undefined;
  readonly since: string | undefined;
};

const STOPPED: ReadonlySet<Verdict> = new Set<Verdict>([
  "deny",
  "ask",
  "isolate",
  "would_deny",
  "would_ask",
  "would_isolate",
]);

const COUNTED: ReadonlySet<Span["event_type"]> = new Set<Span["event_type"]>([
  "command_complete",
  "violation",
  "connection",
]);

/** More than a person reviews. */
const MAX_DISTINCT = 2000;

/** Gathers observations from spans; memory grows with the number of distinct observations, up to a bound. */
export class Observations {
  readonly #wanted: Wanted;
  readonly #commands = new Map<string, ObservedCommand>();
  readonly #writes = new Map<string, ObservedWrite>();
  readonly #connections = new Map<string, ObservedConnection>();
  readonly #violations = new Map<string, ObservedViolation>();
  #spans = 0;
  #redacted = 0;
  #beyond = 0;

  constructor(wanted: Wanted) {
    this.#wanted = wanted;
  }

  /** Adds a span's last line; ignores first lines, and spans of other policies and agents. */
  add(span: Span): void {
    if (!this.#counts(span)) return;
    this.#spans += 1;
    const seen: Seen = { count: 1, last: span.ts, spans: [span.span_id] };
    for (const path of span.fs_diff?.world_only ?? []) this.#addWrite(span, path, seen);
    if (span.event_type === "connection") return this.#addConnection(span, seen);
    if (span.event_type === "violation" && span.violation?.kind === "program")
      return this.#addProgram(span, span.violation.subject, seen);
    if (span.event_type === "violation" && span.violation?.kind === "write")
      return this.#addWrite(span, span.violation.subject, seen);
    if (isOfWorld(span)) return this.#addViolation(span, seen);
    if (span.given?.file_call === true) return;
    if (span.decision !== null && STOPPED.has(span.decision.verdict)) this.#addCommand(span, seen);
  }

  all(): Observed {
    return {
      spans: this.#spans,
      commands: [...this.#commands.values()],
      writes: [...this.#writes.values()],
      connections: [...this.#connections.values()],
      violations: [...this.#violations.values()],
      skipped: { redacted: this.#redacted, beyond: this.#beyond },
    };
  }

  #counts(span: Span): boolean {
    const { policyId, agent, since } = this.#wanted;
    return (
      COUNTED.has(span.event_type) &&
      span.policy_id === policyId &&
      (agent === undefined || span.agent_id === agent) &&
      (since === undefined || span.ts >= since)
    );
  }

  #addConnection({ connection, decision }: Span, seen: Seen): void {
    if (connection === null || connection === undefined || decision?.verdict !== "would_deny") return;
    const { host, port, address, reason } = connection;
    const key = `${host} ${port}`;
    const reached = address !== null || this.#connections.get(key)?.reached === true;
    this.#keep(this.#connections, key, { host, port, reached, reason, seen });
  }

  /** Adds a program stopped at its start. The span's words identify the program only if complete. */
  #addProgram({ decision, program, cwd }: Span, text: string, seen: Seen): void {
    if (decision === null || !STOPPED.has(decision.verdict)) return;
    const argv = argvIn(text);
    const isKnown = program?.cut === false && cwd !== null && !text.includes("[redacted:");
    // The span does not record the folder of './x'.
    if (argv?.[0]?.startsWith("/") !== true || !isKnown) this.#redacted += 1;
    else this.#keep(this.#commands, `${cwd}\0${text}`, { text, argv, cwd, seen });
  }

  #addWrite({ cwd }: Span, path: string, seen: Seen): void {
    this.#keep(this.#writes, path, { path, cwd: cwd ?? "/", seen });
  }

  #addViolation({ violation }: Span, seen: Seen): void {
    if (violation === null || violation === undefined) return;
    const { kind, subject } = violation;
    this.#keep(this.#violations, `${kind} ${subject}`, { kind, subject, seen });
  }

  #addCommand({ cmd, cwd, redacted }: Span, seen: Seen): void {
    if (redacted.length > 0 || cmd === null || cwd === null) {
      this.#redacted += 1;
      return;
    }
    this.#keep(this.#commands, `${cwd}\0${cmd}`, { text: cmd, argv: argvIn(cmd), cwd, seen });
  }

  #keep<T extends { readonly seen: Seen }>(all: Map<string, T>, key: string, one: T): void {
    const before = all.get(key);
    if (before === undefined && all.size >= MAX_DISTINCT) this.#beyond += 1;
    else all.set(key, { ...one, seen: seenAlso(before?.seen, one.seen) });
  }
}

/** Whether a violation comes from a world rather than from a call's refusal: the world's own line names the subject. */
function isOfWorld({ event_type: type, outcome, violation }: Span): boolean {
  return type === "violation" && (outcome !== "refused" || (violation !== undefined && violation !== null));
}

/** Parses an argv, which a span writes as a JSON array. A shell command spelled as such an array runs only its words. */
function argvIn(cmd: string): readonly string[] | undefined {
  if (!cmd.startsWith('["')) return undefined;
  try {
    const value: unknown = JSON.parse(cmd);
    const isWords = Array.isArray(value) && value.every((word) => typeof word === "string");
    return isWords ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Count, last time and newest few spans of an observation. */
export type Seen = { readonly count: number; readonly last: string; readonly spans: readonly string[] };

/** As many spans as a person looks up. */
const KEPT_SPANS = 3;

export function seenAlso(before: Seen | undefined, more: Seen): Seen {
  if (before === undefined) return { ...more, spans: more.spans.slice(-KEPT_SPANS) };
  const [older, newer] = before.last <= more.last ? [before, more] : [more, before];
  return {
    count: before.count + more.count,
    last: newer.last,
    spans: [...new Set([...older.spans, ...newer.spans])].slice(-KEPT_SPANS),
  };
}

/** `seen 4 times, last 2026-01-31T12:00:00Z, spn_… spn_… and 2 more` */
export function seenWords({ count, last, spans }: Seen): string {
  const more = count - spans.length;
  const times = count === 1 ? "once" : `${count} times`;
  const shown = last.replace(/\.\d+Z$/, "Z");
  return `seen ${times}, last ${shown}, ${spans.join(" ")}${more > 0 ? ` and ${more} more` : ""}`;
}
