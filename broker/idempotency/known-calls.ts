/**
 * The calls with a key begun within the last 24 hours, rebuilt from the trace. The key is recorded before any effect of the
 * command, so however the broker ends, a key never runs twice silently.
 */
import type { Database, RootDatabase } from "lmdb";
import type { Changes, Follower } from "../spans/follower.ts";
import type { SpanRecord } from "../spans/trace.ts";

const KEPT_MS = 24 * 60 * 60 * 1000;
const SWEEP_MS = 60_000;

export type KnownCall = {
  /** The owner of the key limit that this call counts towards. */
  readonly owner: string;
  readonly body: string;
  readonly policy: string | null;
  readonly span: string;
  /** Begin in milliseconds since 1970. */
  readonly at: number;
  /** `lost`: the end was not recorded. */
  readonly state: "running" | "ran" | "lost";
};

export class KnownCalls implements Follower {
  readonly #ownerOf: (agent: string) => string;
  readonly #now: () => number;
  readonly #onForgotten: (key: string) => void;
  /** In order of begin. */
  readonly #calls = new Map<string, KnownCall>();
  readonly #owned = new Map<string, number>();
  readonly #changed = new Map<string, KnownCall | undefined>();
  #database: Database<KnownCall, string> | undefined;
  #sweptAt = 0;

  /** `onForgotten` receives keys that are free again. */
  constructor(ownerOf: (agent: string) => string, now: () => number, onForgotten: (key: string) => void) {
    this.#ownerOf = ownerOf;
    this.#now = now;
    this.#onForgotten = onForgotten;
  }

  open(database: RootDatabase): void {
    this.#database = database.openDB({ name: "idempotency" });
    const rows = [...this.#database.getRange({})].sort((one, other) => one.value.at - other.value.at);
    for (const { key, value } of rows) this.#set(key, value);
    this.#changed.clear();
  }

  note(line: SpanRecord): void {
    if (line.idempotency === undefined || line.agent_id === null) return;
    const { key, body, policy = line.policy_hash } = line.idempotency;
    if (line.event_type === "command_start") {
      const at = Date.parse(line.ts);
      const owner = this.#ownerOf(line.agent_id);
      this.#set(key, { owner, body, policy, span: line.span_id, at, state: "running" });
    } else if (line.event_type === "command_complete") this.#ended(key, line);
  }

  find(key: string): KnownCall | undefined {
    const call = this.#calls.get(key);
    if (call === undefined || call.at + KEPT_MS > this.#now()) return call;
    this.forget(key);
    return undefined;
  }

  forget(key: string): void {
    const call = this.#calls.get(key);
    if (call === undefined) return;
    this.#calls.delete(key);
    this.#count(call.owner, -1);
    this.#changed.set(key, undefined);
    this.#onForgotten(key);
  }

  /** Counts the known keys of all agents that share a limit with this agent. */
  countOf(agent: string): number {
    this.#sweep();
    return this.#owned.get(this.#ownerOf(agent)) ?? 0;
  }

  changes(): Changes {
    if (this.#now() - this.#sweptAt > SWEEP_MS) this.#sweep();
    const changed = [...this.#changed];
    return {
      write: () =>
        changed.map(async ([key, call]) =>
          call === undefined ? await this.#database?.remove(key) : await this.#database?.put(key, call),
        ),
      committed: () => {
        for (const [key, call] of changed)
          if (this.#changed.has(key) && this.#changed.get(key) === call) this.#changed.delete(key);
      },
    };
  }

  needs(): number {
    return this.#now() - KEPT_MS;
  }

  #ended(key: string, line: SpanRecord): void {
    const call = this.#calls.get(key);
    if (call?.span !== line.span_id) return;
    if (line.outcome === "failed" && line.code !== "internal") return this.forget(key);
    const isSeen = line.outcome !== "lost" && line.outcome !== "failed";
    const ended: KnownCall = { ...call, state: isSeen ? "ran" : "lost" };
    this.#calls.set(key, ended);
    this.#changed.set(key, ended);
  }

  #set(key: string, call: KnownCall): void {
    if (this.#calls.has(key)) this.forget(key);
    this.#calls.set(key, call);
    this.#count(call.owner, 1);
    this.#changed.set(key, call);
  }

  #count(owner: string, change: number): void {
    this.#owned.set(owner, (this.#owned.get(owner) ?? 0) + change);
  }

  #sweep(): void {
    this.#sweptAt = this.#now();
    for (const [key, { at }] of this.#calls) {
      if (at + KEPT_MS > this.#sweptAt) return;
      this.forget(key);
    }
  }
}
