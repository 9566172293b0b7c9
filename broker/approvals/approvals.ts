/** Pending questions for a person, and the answers given. */
import { isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";
import type { Database, RootDatabase } from "lmdb";
import type { Approval, ApprovalDecision, ApprovalPreview } from "../../schemas/generated/types.ts";
import { newId } from "../model/ids.ts";
import type { OnFault } from "../spans/span-index.ts";
import { QuestionListeners } from "./listeners.ts";
import { Pending, type QuestionEnd } from "./pending.ts";
import { noPreview } from "./preview-words.ts";
import type { BoundPolicy, Grant, Granted, Question } from "./question.ts";

/**
 * Bounds on pending questions. A full bound drops the oldest question: of the asking agent, or of the agent or label with the
 * most.
 */
const MAX_PENDING_OF_AGENT = 16;
const MAX_PENDING = 128;

/** Bound on concurrent previews. */
const MAX_PREVIEWS = 4;

/** Records an event of a question and returns the span's id. Throws when the event cannot be recorded. */
export type RecordEvent = (
  pending: { readonly id: string; readonly question: Question },
  event: QuestionEnd | "asked" | "previewed",
  preview?: ApprovalPreview,
) => string;

export class Approvals {
  readonly listeners = new QuestionListeners();
  readonly #grants: Grants;
  readonly #record: RecordEvent;
  readonly #onFault: OnFault;
  readonly #pending = new Map<string, Pending>();
  readonly #ended = new Ended();
  #previews = 0;
  #closed = false;

  constructor(database: RootDatabase, record: RecordEvent, onFault: OnFault) {
    this.#grants = new Grants(database, onFault);
    this.#record = record;
    this.#onFault = onFault;
  }

  /** Takes an existing answer; a `once` answer is used up. See {@link Grants.take} for `spent`. */
  take(question: Question): (Granted & { readonly spent: Promise<unknown> }) | undefined {
    const given = this.#grants.take(question.key);
    if (given !== undefined) return given;
    const approval = question.standing?.();
    return approval === undefined ? undefined : { approval, how: "always", spent: Promise.resolve() };
  }

  /** Returns the id of an existing answer, which stays as it is. */
  given(question: Question): string | undefined {
    return this.#grants.find(question.key) ?? question.standing?.();
  }

  /** Finds a recent denial of the same question, with its remaining milliseconds. */
  denial(question: Question): { readonly approval: string; readonly restMs: number } | undefined {
    return this.#ended.denialOf(question.key);
  }

  /** Returns the pending question with this key, or opens a new one. Throws when the question cannot be recorded. */
  open(question: Question): Pending {
    const known = [...this.#pending.values()].find((pending) => pending.question.key === question.key);
    if (known !== undefined) return known;
    this.#makeRoom(question.agent);
    const id = newId("apr");
    const span = this.#record({ id, question }, "asked");
    const pending = new Pending(id, span, question, () => this.#endOrSay(pending, "expired"));
    this.#pending.set(id, pending);
    if (this.#closed) this.#endOrSay(pending, "broker_stopped");
    return pending;
  }

  /** Lists pending questions, oldest first, after dropping questions outdated by a changed policy. */
  list(): readonly Approval[] {
    for (const pending of this.#pending.values()) this.#endIfOutdated(pending);
    return [...this.#pending.values()].map((pending) => pending.shown());
  }

  /** Applies a person's answer. Returns the number of waiting calls, or a refusal of the answer. */
  decide(id: string, decision: ApprovalDecision): { readonly released: number } | Refusal {
    const pending = this.#waiting(id);
    if (isRefusal(pending)) return pending;
    if (decision === "deny") return { released: this.#end(pending, "deny") };
    if (!pending.question.offers.includes(decision)) return notOffered(pending, decision);
    return decision === "always" ? this.#keepAlways(pending) : { released: this.#grant(pending, decision) };
  }

  /** Resolves once all answers so far are stored for the next broker. */
  written(): Promise<void> {
    return this.#grants.written();
  }

  /** Previews a pending question. A failed preview is also a result. */
  async preview(id: string): Promise<ApprovalPreview | Refusal> {
    const pending = this.#waiting(id);
    if (isRefusal(pending)) return pending;
    return (await this.previewOf(pending)) ?? noPreviewHere(pending);
  }

  /** Previews a given question; undefined when the question has no preview. */
  async previewOf(pending: Pending): Promise<ApprovalPreview | undefined> {
    if (pending.isPreviewing) return await pending.preview();
    if (this.#previews >= MAX_PREVIEWS)
      return noPreview(`${MAX_PREVIEWS} other previews are running; ask again in a few seconds`);
    this.#previews += 1;
    try {
      const preview = await pending.preview();
      if (preview !== undefined) this.#record(pending, "previewed", preview);
      return preview;
    } catch (error) {
      this.#onFault("A preview failed", error);
      return noPreview("The preview failed; the broker's log says why");
    } finally {
      this.#previews -= 1;
    }
  }

  /** Ends questions and answers bound to another version of this policy. */
  policyRead(source: string, hash: string): void {
    this.#grants.policyRead(source, hash);
    for (const pending of [...this.#pending.values()]) {
      const { policies } = pending.question;
      if (policies.some((policy) => policy.source === source && policy.hash !== hash))
        this.#endOrSay(pending, "policy_changed");
    }
  }

  /** Ends all pending questions and tells the waiting calls. */
  close(): void {
    this.#closed = true;
    for (const pending of [...this.#pending.values()]) this.#endOrSay(pending, "broker_stopped");
  }

  #waiting(id: string): Pending | Refusal {
    const pending = this.#pending.get(id);
    if (pending === undefined) return this.#ended.refusalOf(id);
    return this.#endIfOutdated(pending) ?? pending;
  }

  /** Checking may read the policy again, and reading a changed policy ends the question by itself. */
  #endIfOutdated(pending: Pending): Refusal | undefined {
    const outdated = pending.question.outdated();
    if (outdated !== undefined && this.#pending.has(pending.id)) this.#endOrSay(pending, "policy_changed");
    return outdated;
  }

  /**
   * Writes a temporary file, records, then keeps the file: an unwritable approval is never recorded, an unrecorded one never
   * kept.
   */
  #keepAlways(pending: Pending): { readonly released: number } | Refusal {
    const written = pending.question.writeAlways?.(pending.id);
    if (written === undefined) return notOffered(pending, "always");
    if (isRefusal(written)) return written;
    try {
      this.#record(pending, "always");
    } catch (error) {
      written.discard();
      throw error;
    }
    const unkept = written.keep();
    return unkept ?? { released: this.#settle(pending, "always") };
  }

  /** Records the grant before applying it; waiting calls take the grant in the same turn. */
  #grant(pending: Pending, how: Exclude<Grant, "always">): number {
    this.#record(pending, how);
    this.#grants.add(pending.question, { approval: pending.id, how });
    return this.#settle(pending, how);
  }

  #end(pending: Pending, how: QuestionEnd): number {
    this.#record(pending, how);
    return this.#settle(pending, how);
  }

  /** Ends a question without an answer: even an unwritable trace must not keep the question alive. */
  #endOrSay(pending: Pending, how: QuestionEnd): void {
    try {
      this.#end(pending, how);
    } catch (error) {
      this.#onFault("Cannot record the end of a question", error);
      this.#settle(pending, how);
    }
  }

  #settle(pending: Pending, how: QuestionEnd): number {
    this.#pending.delete(pending.id);
    this.#ended.add(pending.id, pending.question.key, how);
    return pending.end(how);
  }

  #makeRoom(agent: string): void {
    const all = [...this.#pending.values()];
    const own = all.filter(({ question }) => question.agent === agent);
    const crowd = own.length >= MAX_PENDING_OF_AGENT ? own : all.length >= MAX_PENDING ? largest(all) : [];
    const [oldest] = crowd;
    if (oldest !== undefined) this.#endOrSay(oldest, "dropped");
  }
}

/** Returns the questions of the agent with the most, oldest first; of a label, where all labels together have more. */
function largest(all: readonly Pending[]): readonly Pending[] {
  const labels = all.filter(({ question }) => question.isLabel);
  const named = crowdOf(all.filter(({ question }) => !question.isLabel));
  return labels.length >= named.length ? crowdOf(labels) : named;
}

function crowdOf(some: readonly Pending[]): readonly Pending[] {
  const agents = [...new Set(some.map(({ question }) => question.agent))];
  const crowds = agents.map((agent) => some.filter(({ question }) => question.agent === agent));
  return crowds.sort((one, other) => other.length - one.length)[0] ?? [];
}

function notOffered({ question }: Pending, decision: Grant): Refusal {
  const why = question.notes.length === 0 ? "" : `: ${question.notes.join("; ")}`;
  return refusal(
    "invalid_request",
    `decision: this question cannot be answered with ${quoted(decision)}${why}`,
    `Answer with one of ${[...question.offers, "deny"].join(", ")}`,
  );
}

function noPreviewHere({ question }: Pending): Refusal {
  return refusal(
    "invalid_request",
    `Cannot preview a question of kind '${question.kind}': only commands have previews`,
    "Decide by the question's text",
  );
}

type Past = { readonly how: QuestionEnd; readonly at: number; readonly key: string };

/** Number of remembered endings; older ids are reported as unknown. */
const MAX_PAST = 1024;

/** How long a denied question is refused without asking again. */
const DENIAL_MS = 60_000;

const WORDS: Readonly<Record<QuestionEnd, string>> = {
  once: "was approved for one run",
  session: "was approved for its session",
  always: "was approved permanently",
  deny: "was denied",
  expired: "expired without an answer",
  dropped: "was dropped because too many newer questions were asked",
  policy_changed: "ended with a changed policy or folder",
  broker_stopped: "ended with its broker",
};

/** Ended questions, so that a second answer is refused with the first ending. */
class Ended {
  readonly #past = new Map<string, Past>();
  readonly #denied = new Map<string, string>();

  add(id: string, key: string, how: QuestionEnd): void {
    this.#past.set(id, { how, at: Date.now(), key });
    if (how === "deny") this.#denied.set(key, id);
    else this.#denied.delete(key);
    const [oldest] = this.#past;
    if (this.#past.size > MAX_PAST && oldest !== undefined) this.#forget(...oldest);
  }

  denialOf(key: string): { readonly approval: string; readonly restMs: number } | undefined {
    const approval = this.#denied.get(key) ?? "";
    const restMs = (this.#past.get(approval)?.at ?? 0) + DENIAL_MS - Date.now();
    return restMs > 0 ? { approval, restMs } : undefined;
  }

  refusalOf(id: string): Refusal {
    const past = this.#past.get(id);
    const hint =
      "GET /v1/approvals or 'substrate approvals' lists the pending questions; send a call again to ask again";
    if (past === undefined)
      return refusal("not_found", `Unknown question ${quoted(id)}: no pending question has this id`, hint);
    const when = new Date(past.at).toISOString();
    const code = past.how === "policy_changed" ? "policy_changed" : "not_found";
    return refusal(
      code,
      `Question ${quoted(id)} is no longer pending: it ${WORDS[past.how]} at ${when}`,
      hint,
    );
  }

  #forget(id: string, { key }: Past): void {
    this.#past.delete(id);
    if (this.#denied.get(key) === id) this.#denied.delete(key);
  }
}

/** A stored answer: an unused `once`, or a `session`. */
type Kept = {
  readonly approval: string;
  readonly how: "once" | "session";
  readonly policies: readonly BoundPolicy[];
  /** Milliseconds since 1970; null for a session. */
  readonly until: number | null;
};

/** Evicts the oldest answer; its command asks again. */
const MAX_KEPT = 4096;

/**
 * The answers `once` and `session`, by the key of their question. In memory, copied to LMDB for the next broker. Only two callers
 * wait for the copy: a person's answer, and a call using up a `once`.
 */
class Grants {
  readonly #stored: Database<Kept, string>;
  readonly #kept = new Map<string, Kept>();
  readonly #onFault: OnFault;
  #written: Promise<unknown> = Promise.resolve();

  constructor(database: RootDatabase, onFault: OnFault) {
    this.#stored = database.openDB({ name: "approvals" });
    this.#onFault = onFault;
    for (const { key, value } of this.#stored.getRange()) {
      if (isOver(value)) this.#drop(key);
      else this.#kept.set(key, value);
    }
  }

  add({ key, policies, timeoutMs }: Question, { approval, how }: Granted & { how: Kept["how"] }): void {
    const kept = { approval, how, policies, until: how === "once" ? Date.now() + timeoutMs : null };
    this.#kept.delete(key);
    this.#kept.set(key, kept);
    this.#say(this.#stored.put(key, kept));
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > MAX_KEPT && oldest !== undefined) this.#drop(oldest);
  }

  /** Returns the id of the answer to a question. */
  find(key: string): string | undefined {
    const kept = this.#kept.get(key);
    return kept === undefined || isOver(kept) ? undefined : kept.approval;
  }

  /**
   * Takes the answer to a question; a `once` is used up. `spent` resolves when no later broker can find the answer any more, and
   * rejects when its removal cannot be stored.
   */
  take(key: string): (Granted & { readonly spent: Promise<unknown> }) | undefined {
    const kept = this.#kept.get(key);
    if (kept === undefined) return undefined;
    if (isOver(kept)) {
      this.#drop(key);
      return undefined;
    }
    const { approval, how } = kept;
    if (how === "session") return { approval, how, spent: Promise.resolve() };
    this.#kept.delete(key);
    return { approval, how, spent: this.#stored.remove(key) };
  }

  /** Drops all answers given under another version of this policy. */
  policyRead(source: string, hash: string): void {
    for (const [key, { policies }] of this.#kept) {
      if (policies.some((policy) => policy.source === source && policy.hash !== hash)) this.#drop(key);
    }
  }

  #drop(key: string): void {
    this.#kept.delete(key);
    this.#say(this.#stored.remove(key));
  }

  /** Resolves once all answers are stored. */
  async written(): Promise<void> {
    await this.#written;
  }

  #say(write: Promise<boolean>): void {
    this.#written = write.catch((error: unknown) =>
      this.#onFault("Cannot keep an approval for the next broker", error),
    );
  }
}

function isOver({ until }: Kept): boolean {
  return until !== null && until <= Date.now();
}
