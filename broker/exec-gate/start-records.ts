import type { Decision, DecisionRule } from "../../schemas/generated/types.ts";
import type { ProgramStart } from "../../world/backend.ts";
import { newId } from "../model/ids.ts";
import type { Effective } from "../model/effective.ts";
import { redact, redactRule, redactWords, type KnownSecrets } from "../secrets/redact.ts";
import type { SpanRecord } from "../spans/trace.ts";
import type { RefusedStart } from "./start-refusals.ts";

/** Bound on lines: a command can start a denied program a hundred thousand times; further starts are only counted. */
export const MAX_LINES = 1000;

/** Characters of programs' words that a command's lines may have together; later lines keep the beginning of longer texts. */
const MOST_WORDS = 256 * 1024;
const SHORT = 1000;

export type RecordParts = {
  /** The command's `command_start` line. */
  readonly started: SpanRecord;
  readonly secrets: KnownSecrets;
  readonly write: (span: SpanRecord) => void;
};

/** Writes a command's starts into the trace, below the command's span. */
export class StartRecords {
  readonly #parts: RecordParts;
  /** Starts already noted, by rule and fragment. */
  readonly #noted = new Set<string>();
  #lines = 0;
  #words = 0;
  #untold = 0;
  #unread = 0;

  constructor(parts: RecordParts) {
    this.#parts = parts;
  }

  /** Records an allowed start that was observed or warned about. */
  noted(start: ProgramStart, effective: Effective, decision: Decision & { rule: DecisionRule }): void {
    const { verdict, rule } = decision;
    const key = JSON.stringify([verdict, rule.source, rule.pattern, rule.fragment]);
    if (this.#noted.has(key)) return;
    if (this.#noted.size < MAX_LINES) this.#noted.add(key);
    this.#write(start, effective, decision, {});
  }

  /** @param effective the refusing policies; undefined when no policy loaded. */
  refused(start: ProgramStart, { verdict, rule, error }: RefusedStart, effective?: Effective): void {
    const { code, message, hint, approval_id } = error;
    const known = this.#parts.secrets;
    this.#write(
      start,
      effective,
      { verdict, mode: "enforce", rule },
      {
        code,
        message: this.#short(redact(message, "message", known).text),
        hint: this.#short(redact(hint, "hint", known).text),
        ...(approval_id === undefined ? {} : { approval_id }),
      },
    );
  }

  /** Counts a start that nobody judged. */
  unread(): void {
    this.#unread += 1;
  }

  finish(): void {
    this.#finishUnread();
    if (this.#untold === 0) return;
    const message = `The command started ${this.#untold} more programs that a rule matches; only the first ${MAX_LINES} are recorded one by one`;
    const violation = { kind: "program" as const, subject: `${this.#untold} more` };
    this.#untold = 0;
    this.#parts.write({ ...this.#line(), message, violation });
  }

  #finishUnread(): void {
    if (this.#unread === 0) return;
    const message = `${this.#unread} more programs with long arguments started before they could be judged; the policies only observe, so they ran`;
    const violation = { kind: "program" as const, subject: `${this.#unread} not judged` };
    this.#unread = 0;
    this.#parts.write({ ...this.#line(), message, violation });
  }

  #write(
    { files: [file], pid, cut }: ProgramStart,
    effective: Effective | undefined,
    { verdict, mode, rule }: Decision,
    more: Partial<SpanRecord>,
  ): void {
    if (this.#lines >= MAX_LINES) {
      this.#untold += 1;
      return;
    }
    this.#lines += 1;
    const known = this.#parts.secrets;
    const words = redactWords(
      [file.called || (file.path ?? ""), ...file.argv.slice(1)],
      "violation",
      known,
    ).text;
    this.#words += words.length;
    const subject = this.#short(words);
    const told = redactRule(rule, known);
    const path = redact(file.path ?? file.called, "program", known).text;
    const line = this.#line();
    const holds = effective === undefined ? {} : { policy_id: effective.id, policy_hash: effective.hash };
    this.#parts.write({
      ...line,
      ...holds,
      program: { path, pid, started_at: line.ts, cut, replaced: false },
      decision: {
        verdict,
        mode,
        rule: told === null ? null : { ...told, fragment: this.#short(told.fragment) },
      },
      violation: { kind: "program", subject },
      ...more,
    });
  }

  #short(words: string): string {
    const isWhole = this.#words <= MOST_WORDS || words.length <= SHORT;
    return isWhole ? words : `${words.slice(0, SHORT)}… (${words.length} characters)`;
  }

  #line(): SpanRecord {
    const { started } = this.#parts;
    return {
      ...started,
      ts: new Date().toISOString(),
      span_id: newId("spn"),
      parent_span: started.span_id,
      event_type: "violation",
      component: "broker",
      replayable: false,
    };
  }
}
