/** One pending question, the calls waiting for its answer, and its ending. */
import type { Approval, ApprovalPreview } from "../../schemas/generated/types.ts";
import type { Grant, Question } from "./question.ts";
import { NO_PREVIEW, noPreview, RUNNING_PREVIEW } from "./preview-words.ts";

/** The endings of a question; each question gets exactly one. */
export type QuestionEnd = Grant | "deny" | "expired" | "dropped" | "policy_changed" | "broker_stopped";

/** The ending of a wait for an answer. */
export type WaitEnd = QuestionEnd | "time_is_over" | "caller_left";

export class Pending {
  readonly id: string;
  readonly question: Question;
  readonly askedAt = Date.now();
  /** The span that recorded the question. */
  readonly span: string;
  readonly #timer: NodeJS.Timeout;
  /** Resolvers of the waits, with the ids of the waiting calls. */
  readonly #waiting = new Map<(end: WaitEnd) => void, string | undefined>();
  #preview: ApprovalPreview = NO_PREVIEW;
  #previewing: Promise<ApprovalPreview> | undefined;
  #end: QuestionEnd | undefined;

  constructor(id: string, span: string, question: Question, onExpiry: () => void) {
    this.id = id;
    this.span = span;
    this.question = question;
    this.#timer = setTimeout(onExpiry, question.timeoutMs);
    this.#timer.unref();
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get isPreviewing(): boolean {
    return this.#previewing !== undefined;
  }

  get hasPreview(): boolean {
    return this.#preview.state === "done" || this.#preview.state === "failed";
  }

  /** Waits at most `ms` on behalf of `call`, or until `signal` reports that the caller has left. */
  wait(ms: number, signal: AbortSignal, call?: string): Promise<WaitEnd> {
    if (this.#end !== undefined) return Promise.resolve(this.#end);
    if (signal.aborted) return Promise.resolve("caller_left");
    if (ms <= 0) return Promise.resolve("time_is_over");
    return new Promise((resolve) => {
      const settle = (end: WaitEnd): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", leave);
        this.#waiting.delete(settle);
        resolve(end);
      };
      const leave = (): void => settle("caller_left");
      const timer = setTimeout(settle, ms, "time_is_over");
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.set(settle, call);
    });
  }

  /** Ends the question; further endings are ignored. Returns the number of waiting calls. */
  end(how: QuestionEnd): number {
    this.#end ??= how;
    clearTimeout(this.#timer);
    const waiting = [...this.#waiting.keys()];
    for (const settle of waiting) settle(this.#end);
    return waiting.length;
  }

  /** Runs the preview once at a time; concurrent callers share the result. Undefined without a preview. */
  preview(): Promise<ApprovalPreview> | undefined {
    const { preview } = this.question;
    if (preview === undefined) return undefined;
    this.#previewing ??= this.#run(preview);
    return this.#previewing;
  }

  shown(): Approval {
    const { question } = this;
    return {
      approval_id: this.id,
      kind: question.kind,
      span_id: question.span,
      agent_id: question.agent,
      session_id: question.session,
      project: question.project,
      cwd: question.cwd,
      policy_id: question.policyId,
      policy_hash: question.policyHash,
      profile: question.profile,
      rule: question.rule,
      reason: question.reason,
      subject: question.subject,
      offers: [...question.offers, "deny"],
      notes: question.notes,
      asked_at: new Date(this.askedAt).toISOString(),
      expires_at: new Date(this.askedAt + question.timeoutMs).toISOString(),
      waiting: this.waiting,
      calls: [...new Set(this.#waiting.values())].filter((call) => call !== undefined),
      preview: this.#preview,
    };
  }

  async #run(preview: NonNullable<Question["preview"]>): Promise<ApprovalPreview> {
    this.#preview = RUNNING_PREVIEW;
    try {
      this.#preview = await preview(this.span);
    } catch (error) {
      this.#preview = noPreview("The preview failed; the broker's log says why");
      throw error;
    } finally {
      this.#previewing = undefined;
    }
    return this.#preview;
  }
}
