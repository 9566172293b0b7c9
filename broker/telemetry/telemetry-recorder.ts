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

/** What one list of a span names, and how many characters all of them have together: a span is one line. */
const MAX_LISTED = 50;
const MAX_TEXT = 32 * 1024;

/** What the line that closes a command says of it; `redacted` is all that was replaced in the line. */
type Fields = Pick<SpanRecord, "redacted"> & { readonly telemetry: SpanTelemetry };

/** By what each is shown as, but for its secrets: those are looked for in what was reported, which may have them alone. */
type Listed = ReadonlyMap<TelemetryKind, ReadonlyMap<string, TelemetryEvent>>;

/** Gathers what the programs of one command report of themselves, until its last line is written. */
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

  /** Undefined where there is nothing to be loaded, or nobody asks: then no program is another than without. */
  get onTelemetry(): ExecRequest["onTelemetry"] {
    return this.#asked && this.#why === undefined ? (report) => this.#take(report) : undefined;
  }

  /** What there is to say; nothing where no policy asks. `before` is what was replaced in the rest of the line. */
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
      // A world that is lost says nothing at its end.
      reason: this.#isOver ? null : NOT_WHOLE,
      counts: counts as Record<TelemetryKind, number>,
      unlisted: this.#unlisted + (this.#counts?.untold ?? 0),
      dropped: this.#counts?.missed ?? 0,
    };
  }
}

const NOT_HEARD = "the world could not make the socket at which programs report";
const NOT_WHOLE = "there may be more: the command had no end that its world could tell";

type Told = Pick<Required<SpanTelemetry>, "counts" | "unlisted" | "dropped"> &
  Pick<SpanTelemetry, "state" | "reason">;

/** Of a path `/a/./b` and `/a//b` are `/a/b`, whatever stands there; `/a/../b` may be something else. */
function shownAs(kind: TelemetryKind, text: string): string {
  return kind === "connect" ? text : text.replace(/\/(?:\.?\/)+/g, "/");
}

function withoutSecrets(told: Told, listed: Listed, known: KnownSecrets): Fields {
  // Each secret once: reports may be full of one.
  const redacted = new Map<string, Redaction>();
  const clean = (kind: TelemetryKind): string[] => {
    const texts = [...(listed.get(kind)?.values() ?? [])].map(({ text, cut }) => {
      const whole = cut ? withoutCutEnds([text], known).join("") : text;
      // Before and after: a secret may have empty steps in it, and one without may have been reported with some.
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
