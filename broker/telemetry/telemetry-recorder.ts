import type { SpanTelemetry } from "../../schemas/generated/types.ts";
import {
  type ExecRequest,
  TELEMETRY_KINDS,
  type TelemetryCounts,
  type TelemetryEvent,
  type TelemetryKind,
  type TelemetryReport,
  type World,
} from "../../world/backend.ts";
import { withoutCutEnds } from "../programs/cut-words.ts";
import { type KnownSecrets, type Redaction, redact } from "../secrets/redact.ts";
import type { SpanRecord } from "../spans/trace.ts";

/** Bounds: entries per list of a span, and characters of all lists together, since a span is a single line. */
const MAX_LISTED = 50;
const MAX_TEXT = 32 * 1024;

/** Fields of the command's closing line; `redacted` lists all replacements in the line. */
type Fields = Pick<SpanRecord, "redacted"> & { readonly telemetry: SpanTelemetry };

/**
 * Events by shown text, secrets included: redaction needs the reported text, where a secret may still be recognizable.
 */
type Listed = ReadonlyMap<TelemetryKind, ReadonlyMap<string, TelemetryEvent>>;

/** Collects the telemetry of a command's programs until the command's last line is written. */
export class TelemetryRecorder {
  readonly #why: string | undefined;
  readonly #asked: boolean;
  readonly #known: KnownSecrets;
  readonly #listed = new Map(TELEMETRY_KINDS.map((kind) => [kind, new Map<string, TelemetryEvent>()]));
  readonly #seen = new Map<TelemetryKind, number>();
  #text = 0;
  #unlisted = 0;
  #counts: TelemetryCounts | undefined;
  #isOver = false;

  constructor({ telemetry }: Pick<World, "telemetry">, known: KnownSecrets) {
    this.#asked = telemetry !== undefined;
    this.#why = telemetry?.on === false ? telemetry.why : undefined;
    this.#known = known;
  }

  /** Undefined when telemetry is off or no policy asks: then programs run exactly as without telemetry. */
  get onTelemetry(): ExecRequest["onTelemetry"] {
    return this.#asked && this.#why === undefined ? (report) => this.#take(report) : undefined;
  }

  /** Makes the fields; empty when no policy asks. `before` lists the replacements in the rest of the line. */
  fields(before: SpanRecord["redacted"]): Fields | Record<string, never> {
    if (!this.#asked) return {};
    const off = this.#why ?? (this.#isOver && this.#counts === undefined ? NOT_HEARD : undefined);
    if (off !== undefined) return { telemetry: { state: "off", reason: off }, redacted: before };
    const { telemetry, redacted } = withoutSecrets(this.#told(), this.#listed, this.#known);
    return { telemetry, redacted: [...before, ...redacted] };
  }

  #take(report: TelemetryReport): void {
    if (report.kind === "events") for (const event of report.events) this.#note(event);
    else {
      this.#counts = report.counts;
      this.#isOver = true;
    }
  }

  #note(event: TelemetryEvent): void {
    const { kind, text } = event;
    const list = this.#listed.get(kind);
    const shown = shownAs(kind, text);
    this.#seen.set(kind, (this.#seen.get(kind) ?? 0) + 1);
    if (list === undefined || list.has(shown)) return;
    if (list.size === MAX_LISTED || this.#text + text.length > MAX_TEXT) {
      this.#unlisted += 1;
      return;
    }
    this.#text += text.length;
    list.set(shown, event);
  }

  #told(): Told {
    const counts = Object.fromEntries(
      TELEMETRY_KINDS.map((kind) => [kind, this.#counts?.kinds[kind] ?? this.#seen.get(kind) ?? 0]),
    );
    return {
      state: "on",
      // A lost world sends no final report.
      reason: this.#isOver ? null : NOT_WHOLE,
      counts: counts as Record<TelemetryKind, number>,
      unlisted: this.#unlisted + (this.#counts?.untold ?? 0),
      dropped: this.#counts?.missed ?? 0,
    };
  }
}

const NOT_HEARD = "the world could not make the socket for the programs' reports";
const NOT_WHOLE = "there may be more: the world did not learn of the command's end";

type Told = Pick<Required<SpanTelemetry>, "counts" | "unlisted" | "dropped"> &
  Pick<SpanTelemetry, "state" | "reason">;

/** Normalizes a path: `/a/./b` and `/a//b` always equal `/a/b`, but `/a/../b` may differ. */
function shownAs(kind: TelemetryKind, text: string): string {
  return kind === "connect" ? text : text.replace(/\/(?:\.?\/)+/g, "/");
}

function withoutSecrets(told: Told, listed: Listed, known: KnownSecrets): Fields {
  // Lists each kind of secret once: reports may repeat a secret many times.
  const redacted = new Map<string, Redaction>();
  const clean = (kind: TelemetryKind): string[] => {
    const texts = [...(listed.get(kind)?.values() ?? [])].map(({ text, cut }) => {
      const whole = cut ? withoutCutEnds([text], known).join("") : text;
      // Redacts before and after normalizing: a secret may itself contain `//`, or may have been reported with extra
      // slashes.
      const first = redact(whole, "telemetry", known);
      const second = redact(shownAs(kind, first.text), "telemetry", known);
      for (const one of [...first.redacted, ...second.redacted]) redacted.set(one.kind, one);
      return second.text;
    });
    return [...new Set(texts)];
  };
  const telemetry: SpanTelemetry = {
    ...told,
    programs: clean("exec"),
    written: clean("write"),
    connected: clean("connect"),
    unlinked: clean("unlink"),
    renamed: clean("rename"),
  };
  return { telemetry, redacted: [...redacted.values()] };
}
