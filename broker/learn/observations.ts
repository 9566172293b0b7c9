import type { Span, Verdict } from "../../schemas/generated/types.ts";

/** A command that the policy stopped, or would have; the same one in the same folder is one. */
export type ObservedCommand = {
  /** As it stands in the span. */
  readonly text: string;
  /** The words of a call without a shell; undefined for a shell command. */
  readonly argv: readonly string[] | undefined;
  readonly cwd: string;
  readonly seen: Seen;
};

/** A write outside `fs.write` that was refused, or stayed in the world, by a command that ran in `cwd`. */
export type ObservedWrite = { readonly path: string; readonly cwd: string; readonly seen: Seen };

/** A connection that was made, or tried, although the policy's lists do not allow it. */
export type ObservedConnection = {
  /** A name, or the address where none was dialled. */
  readonly host: string;
  readonly port: number;
  /** At least once a server took it. */
  readonly reached: boolean;
  /** Why it ended, the last time it was seen; null when both sides were done. */
  readonly reason: string | null;
  readonly seen: Seen;
};

/** What a running command did against the rules of its world. */
export type ObservedViolation = { readonly kind: string; readonly subject: string; readonly seen: Seen };

/** Spans that nothing can be learned from, counted. */
export type Skipped = {
  /** It was changed, or cut, before it was recorded, or its file is not known: what ran is not known. */
  readonly redacted: number;
  /** More distinct commands or paths than are looked at. */
  readonly beyond: number;
};

export type Observed = {
  /** How many spans of the policy were looked at. */
  readonly spans: number;
  readonly commands: readonly ObservedCommand[];
  readonly writes: readonly ObservedWrite[];
  readonly connections: readonly ObservedConnection[];
  readonly violations: readonly ObservedViolation[];
  readonly skipped: Skipped;
};

/** Whose spans count. `since` is an ISO time. */
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

/** Gathers what spans say; memory grows with what is distinct in them, up to a bound. */
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

  /** Takes in a span's last line; those of other policies and agents, and first lines, are passed over. */
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

  /** What a rule stopped, or would have, when a running command started it. Its words say what ran only if all are known. */
  #addProgram({ decision, program, cwd }: Span, text: string, seen: Seen): void {
    if (decision === null || !STOPPED.has(decision.verdict)) return;
    const argv = argvIn(text);
    const isKnown = program?.cut === false && cwd !== null && !text.includes("[redacted:");
    // In which folder './x' was meant is not told.
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

/** A violation that is no call's refusal: the world's own line says what it is about. */
function isOfWorld({ event_type: type, outcome, violation }: Span): boolean {
  return type === "violation" && (outcome !== "refused" || (violation !== undefined && violation !== null));
}

/** A span writes an argv as a JSON array. A shell command that spells one runs nothing else than its words say. */
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

/** How often something was observed, when last, and in which spans: the newest few. */
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
