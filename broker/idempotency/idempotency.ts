/** Answers a repeated call with the first call's reply, without running its command again. */
import type { RootDatabase } from "lmdb";
import type { SpanIdempotency } from "../../schemas/generated/types.ts";
import type { Outcome } from "../model/outcome.ts";
import { type Refusal, refusal } from "../model/refusal.ts";
import type { Changes, Follower } from "../spans/follower.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { KeptReplies, REPLY_BOUNDS, type ReplyBounds } from "./kept-replies.ts";
import { type KnownCall, KnownCalls } from "./known-calls.ts";

/** Keys remembered for 24 hours: per agent with its own socket, and for all labels together. */
const MOST_KEYS = 50_000;

/** A call with a key. */
export type KeyedCall = {
  readonly identity: SpanIdempotency;
  readonly agent: string;
  /** Hash of the policy currently in force for the call. */
  readonly policy: string;
};

type Answer = { readonly again: Promise<Outcome> } | { readonly outcome: Outcome } | { readonly first: true };

type Running = { readonly body: string; readonly policy: string; readonly outcome: Promise<Outcome> };

export class Idempotency implements Follower {
  readonly #replies: KeptReplies;
  readonly #calls: KnownCalls;
  readonly #running = new Map<string, Running>();

  /** `ownerOf`: the owner of the key limit that an agent counts towards; all labels share one limit, because labels are free. */
  constructor(
    ownerOf: (agent: string) => string,
    now: () => number = Date.now,
    bounds: ReplyBounds = REPLY_BOUNDS,
  ) {
    this.#replies = new KeptReplies(bounds);
    this.#calls = new KnownCalls(ownerOf, now, (key) => this.#replies.drop(key));
  }

  /**
   * Returns the first call's outcome, or calls `run` for a first call. Undefined when the first call was refused while this call
   * waited: the state may have changed, so the caller must decide anew.
   */
  async once(call: KeyedCall, run: () => Promise<Outcome>): Promise<Outcome | undefined> {
    const answer = this.#answer(call);
    if ("outcome" in answer) return answer.outcome;
    if ("first" in answer) return await this.#first(call, run);
    const outcome = await answer.again;
    return outcome.kind === "ran" ? outcome : undefined;
  }

  open(database: RootDatabase): void {
    this.#replies.open(database);
    this.#calls.open(database);
  }

  note(line: SpanRecord): void {
    this.#calls.note(line);
  }

  changes(): Changes {
    const parts = [this.#calls.changes(), this.#replies.changes()];
    return {
      write: () => parts.flatMap((part) => part.write()),
      committed: () => {
        for (const part of parts) part.committed();
      },
    };
  }

  needs(): number {
    return this.#calls.needs();
  }

  /** Runs in the same turn of the event loop as {@link #first}: of two concurrent calls only one is the first. */
  #answer(call: KeyedCall): Answer {
    const { key, body } = call.identity;
    const running = this.#running.get(key);
    if (running !== undefined) {
      if (running.policy !== call.policy) return refused(policyMoved());
      return running.body === body ? { again: running.outcome } : refused(conflict(undefined));
    }
    const known = this.#known(call);
    if (known !== undefined) return this.#repeat(call, known);
    return this.#calls.countOf(call.agent) < MOST_KEYS ? { first: true } : refused(crowded(MOST_KEYS));
  }

  /** Finds a known call; an outcome decided under another policy is forgotten. */
  #known({ identity: { key }, policy }: KeyedCall): KnownCall | undefined {
    const known = this.#calls.find(key);
    if (known === undefined || known.policy === policy) return known;
    this.#calls.forget(key);
    return undefined;
  }

  #repeat({ identity: { key, body } }: KeyedCall, known: KnownCall): Answer {
    if (known.body !== body) return refused(conflict(known.span));
    const reply = known.state === "ran" ? this.#replies.find(key) : undefined;
    return reply === undefined ? refused(withoutReply(known)) : { outcome: { kind: "ran", reply } };
  }

  async #first(
    { identity: { key, body }, policy }: KeyedCall,
    run: () => Promise<Outcome>,
  ): Promise<Outcome> {
    const outcome = run()
      .then((ended) => {
        if (ended.kind === "ran") this.#replies.keep(key, ended.reply);
        return ended;
      })
      .finally(() => this.#running.delete(key));
    this.#running.set(key, { body, policy, outcome });
    return await outcome;
  }
}

function refused(error: Refusal): Answer {
  return { outcome: { kind: "refused", error } };
}

/** Refusals for a reused key. The repeated call never runs. */

/** The first call, with `span`, had another body. */
function conflict(span: string | undefined): Refusal {
  return refusal(
    "idempotency_conflict",
    "idempotency_key: already used by this agent for a call with another body",
    "Send a new key for a new command; a retry has to repeat the first call in every field",
    span === undefined ? {} : { span_id: span },
  );
}

/** The first call began, but its reply is gone. Running again could repeat its effects. */
function withoutReply({ span, state }: KnownCall): Refusal {
  const why =
    state === "ran"
      ? "the call ran, but its reply was not kept"
      : "the call was lost with the broker or failed in it, and may have run in part";
  return refusal(
    "idempotency_conflict",
    `Cannot repeat the reply of the first call with this idempotency_key: ${why}`,
    `Check GET /v1/trace/${span} and the project; send a new key to run the command again`,
    { span_id: span },
  );
}

function policyMoved(): Refusal {
  return refusal(
    "policy_changed",
    "The first call with this idempotency_key is still running, under a policy that has changed since",
    "Wait until it has ended; then the key is free and the command runs under the new policy",
    { retry_after_ms: 1000 },
  );
}

function crowded(most: number): Refusal {
  return refusal(
    "busy",
    `Cannot keep another idempotency_key: ${most} keys of the last 24 hours are kept already`,
    "Leave 'idempotency_key' out if a second run does no harm",
    { retry_after_ms: 60_000 },
  );
}
