/** The questions that wait for a person, and the answers that were given. */
import { isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";
import type { RootDatabase } from "lmdb";
import type { Approval, ApprovalDecision, ApprovalPreview } from "../../schemas/generated/types.ts";
import { newId } from "../model/ids.ts";
import type { OnFault } from "../spans/span-index.ts";
import { Ended } from "./ended.ts";
import { Grants } from "./grants.ts";
import { Pending, type QuestionEnd } from "./pending.ts";
import { noPreview } from "./preview-words.ts";
import type { Grant, Granted, Question } from "./question.ts";

/** Questions that wait at once. Past a bound the oldest goes: of its agent, or of the agent or the labels that have the most. */
const MAX_PENDING_OF_AGENT = 16;
const MAX_PENDING = 128;

/** Commands that are tried out at once. */
const MAX_PREVIEWS = 4;

/** Puts on record what happened to a question; returns the span. Throws when it cannot be recorded. */
export type RecordEvent = (
  pending: { readonly id: string; readonly question: Question },
  event: QuestionEnd | "asked" | "previewed",
  preview?: ApprovalPreview,
) => string;

export class Approvals {
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

  /** The answer that was given already, used up if it was for one run; see {@link Grants.take} for `spent`. */
  take(question: Question): (Granted & { readonly spent: Promise<unknown> }) | undefined {
    const given = this.#grants.take(question.key);
    if (given !== undefined) return given;
    const approval = question.standing?.();
    return approval === undefined ? undefined : { approval, how: "always", spent: Promise.resolve() };
  }

  /** The denial that still holds for a question: its approval, and for how many milliseconds more. */
  denial(question: Question): { readonly approval: string; readonly restMs: number } | undefined {
    return this.#ended.denialOf(question.key);
  }

  /** The one question of this key: the one that waits already, or a new one. Throws when it cannot be put on record. */
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

  /** What waits, oldest first. Questions that a changed policy has answered are gone from it. */
  list(): readonly Approval[] {
    for (const pending of this.#pending.values()) this.#endIfOutdated(pending);
    return [...this.#pending.values()].map((pending) => pending.shown());
  }

  /** A person's answer. Returns how many calls waited for it, or why it does not count. */
  decide(id: string, decision: ApprovalDecision): { readonly released: number } | Refusal {
    const pending = this.#waiting(id);
    if (isRefusal(pending)) return pending;
    if (decision === "deny") return { released: this.#end(pending, "deny") };
    if (!pending.question.offers.includes(decision)) return notOffered(pending, decision);
    return decision === "always" ? this.#keepAlways(pending) : { released: this.#grant(pending, decision) };
  }

  /** Settles when the answers so far outlive this broker. */
  written(): Promise<void> {
    return this.#grants.written();
  }

  /** Tries out what waits. Settles with what came of it, which a failed one says too. */
  async preview(id: string): Promise<ApprovalPreview | Refusal> {
    const pending = this.#waiting(id);
    if (isRefusal(pending)) return pending;
    return (await this.previewOf(pending)) ?? noPreviewHere(pending);
  }

  /** The same for a question at hand; undefined when there is nothing that could be tried out. */
  async previewOf(pending: Pending): Promise<ApprovalPreview | undefined> {
    if (pending.isPreviewing) return await pending.preview();
    if (this.#previews >= MAX_PREVIEWS)
      return noPreview(
        `${MAX_PREVIEWS} other commands are being tried out: ask for it again in a few seconds`,
      );
    this.#previews += 1;
    try {
      const preview = await pending.preview();
      if (preview !== undefined) this.#record(pending, "previewed", preview);
      return preview;
    } catch (error) {
      this.#onFault("A preview broke", error);
      return noPreview("It broke: the broker's log says why");
    } finally {
      this.#previews -= 1;
    }
  }

  /** A policy was read: what was asked or answered under other words of it is over. */
  policyRead(source: string, hash: string): void {
    this.#grants.policyRead(source, hash);
    for (const pending of [...this.#pending.values()]) {
      const { policies } = pending.question;
      if (policies.some((policy) => policy.source === source && policy.hash !== hash))
        this.#endOrSay(pending, "policy_changed");
    }
  }

  /** Nobody can answer any more: whoever waits is told so. */
  close(): void {
    this.#closed = true;
    for (const pending of [...this.#pending.values()]) this.#endOrSay(pending, "broker_stopped");
  }

  #waiting(id: string): Pending | Refusal {
    const pending = this.#pending.get(id);
    if (pending === undefined) return this.#ended.refusalOf(id);
    return this.#endIfOutdated(pending) ?? pending;
  }

  /** Looking may read the policy anew, which ends it on its own. */
  #endIfOutdated(pending: Pending): Refusal | undefined {
    const outdated = pending.question.outdated();
    if (outdated !== undefined && this.#pending.has(pending.id)) this.#endOrSay(pending, "policy_changed");
    return outdated;
  }

  /** What cannot be written is not recorded, and what cannot be recorded is in no file either. */
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

  /** On record first, then in force; whoever waits takes it in the same turn. */
  #grant(pending: Pending, how: Exclude<Grant, "always">): number {
    this.#record(pending, how);
    this.#grants.add(pending.question, { approval: pending.id, how });
    return this.#settle(pending, how);
  }

  #end(pending: Pending, how: QuestionEnd): number {
    this.#record(pending, how);
    return this.#settle(pending, how);
  }

  /** For ends that nobody asked for: a trace that cannot be written must not keep a question alive. */
  #endOrSay(pending: Pending, how: QuestionEnd): void {
    try {
      this.#end(pending, how);
    } catch (error) {
      this.#onFault("The end of a question cannot be recorded", error);
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

/** The questions of the agent that has the most, oldest first; of one of the labels, where all of them have more. */
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
    `A question of the kind '${question.kind}' has nothing that could be tried out`,
    "Decide by what it says",
  );
}
