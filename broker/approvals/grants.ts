import type { Database, RootDatabase } from "lmdb";
import type { OnFault } from "../spans/span-index.ts";
import type { BoundPolicy, Granted, Question } from "./question.ts";

/** An answer that waits to be used, or that holds for a session. */
type Kept = {
  readonly approval: string;
  readonly how: "once" | "session";
  readonly policies: readonly BoundPolicy[];
  /** Milliseconds since 1970; a session's has no end of its own. */
  readonly until: number | null;
};

/** The longest unused goes first; its command asks again. */
const MAX_KEPT = 4096;

/**
 * The answers `once` and `session`, by the key of their question. In memory, with a copy in LMDB that the next broker
 * begins with. Only a person's answer waits for the copy, and whoever uses up a `once`.
 */
export class Grants {
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

  /**
   * The answer to a question, used up if it was for one run. `spent` settles when no later broker can find it any more,
   * and rejects when that cannot be made sure.
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

  /** Ends every answer that was given under other words of this policy. */
  policyRead(source: string, hash: string): void {
    for (const [key, { policies }] of this.#kept) {
      if (policies.some((policy) => policy.source === source && policy.hash !== hash)) this.#drop(key);
    }
  }

  #drop(key: string): void {
    this.#kept.delete(key);
    this.#say(this.#stored.remove(key));
  }

  /** Settles when the next broker would know all that this one knows. */
  async written(): Promise<void> {
    await this.#written;
  }

  #say(write: Promise<boolean>): void {
    this.#written = write.catch((error: unknown) =>
      this.#onFault("An approval cannot be kept for the next broker", error),
    );
  }
}

function isOver({ until }: Kept): boolean {
  return until !== null && until <= Date.now();
}
