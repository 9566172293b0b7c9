/** The accounts, counted from the lines of the trace: what was used is what stands there. */
import type { Database, RootDatabase } from "lmdb";
import type { BudgetTerms } from "../../schemas/generated/types.ts";
import type { Changes, Follower } from "../spans/follower.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { Account, type Meter } from "./account.ts";
import { USUAL_WINDOW_MS } from "./limits.ts";

/** The name of what all labels have together: no agent can be called so. */
export const SHARED = "+shared";

/** How often accounts are dropped of which nothing counts any more. */
const SWEEP_MS = 60_000;

export type Clock = () => number;

export class Ledger implements Follower {
  readonly #isLabel: (agent: string) => boolean;
  readonly #now: Clock;
  readonly #accounts = new Map<string, Account>();
  /** Commands that run, and when they were charged. */
  readonly #running = new Map<string, number>();
  /** Changed since they were last committed; the number tells a later change from an earlier one. */
  readonly #changed = new Map<string, number>();
  #changes = 0;
  #sweptAt = 0;
  #database: Database<readonly Meter[], string> | undefined;

  /** `isLabel`: whether an agent has no socket of its own, and so no budget apart from all others. */
  constructor(isLabel: (agent: string) => boolean, now: Clock) {
    this.#isLabel = isLabel;
    this.#now = now;
  }

  get size(): number {
    return this.#accounts.size;
  }

  open(database: RootDatabase): void {
    this.#database = database.openDB({ name: "budgets" });
    for (const { key, value } of this.#database.getRange({})) this.#accounts.set(key, new Account(value));
  }

  note(line: SpanRecord): void {
    if (line.budget_reset !== undefined) return this.#reset(line.budget_reset);
    // What shims report runs on the host, and is charged to nobody.
    if (line.agent_id === null || line.component === "shim") return;
    if (line.event_type === "command_start") this.#began(line, line.agent_id);
    else if (line.event_type === "command_complete") this.#ended(line, line.agent_id);
    else if (line.event_type === "connection") this.#sent(line, line.agent_id);
    else if (line.event_type === "rate_limit") this.#lowered(line, line.agent_id);
  }

  changes(): Changes {
    if (this.#now() - this.#sweptAt > SWEEP_MS) this.sweep();
    const changed = [...this.#changed];
    const rows = changed.map(([name]) => [name, this.#accounts.get(name)?.meters() ?? []] as const);
    return {
      write: () =>
        rows.map(async ([name, meters]) =>
          meters.length === 0 ? await this.#database?.remove(name) : await this.#database?.put(name, meters),
        ),
      committed: () => {
        for (const [name, change] of changed)
          if (this.#changed.get(name) === change) this.#changed.delete(name);
      },
    };
  }

  /** A window that runs is counted anew from its first use. */
  needs(): number {
    const now = this.#now();
    let first = now - USUAL_WINDOW_MS;
    for (const account of this.#accounts.values())
      for (const { begunAt, lengthMs } of account.meters())
        if (begunAt + lengthMs > now) first = Math.min(first, begunAt);
    return first;
  }

  isLabel(agent: string): boolean {
    return this.#isLabel(agent);
  }

  /** Those that count a command of this agent: its own, and for a label the one of all labels. */
  accountsOf(agent: string): readonly Account[] {
    const own = this.account(agent);
    return this.#isLabel(agent) ? [own, this.account(SHARED)] : [own];
  }

  account(name: string): Account {
    const known = this.#accounts.get(name);
    if (known !== undefined) return known;
    const account = new Account();
    this.#accounts.set(name, account);
    return account;
  }

  /** An account for looking at only. */
  find(name: string): Account | undefined {
    return this.#accounts.get(name);
  }

  /** Names of those of whom something counts. */
  inUse(): readonly string[] {
    const now = this.#now();
    return [...this.#accounts].filter(([, account]) => !account.isIdle(now)).map(([name]) => name);
  }

  /** Binds an agent to limits that its call named, until its windows end. */
  lower(agent: string, { named, windows_ms: lengths }: BudgetTerms, at: number): void {
    if (named === undefined) return;
    this.account(agent).lower(named, at, lengths ?? USUAL);
    this.#touch(agent);
  }

  /** Drops accounts of which nothing counts. */
  sweep(): void {
    this.#sweptAt = this.#now();
    for (const [name, account] of this.#accounts) {
      if (!account.isIdle(this.#sweptAt)) continue;
      this.#accounts.delete(name);
      this.#touch(name);
    }
  }

  #began(line: SpanRecord, agent: string): void {
    const at = Date.parse(line.ts);
    this.#running.set(line.span_id, at);
    const lengths = windowsOf(line.budget?.windows_ms);
    for (const account of this.accountsOf(agent)) account.charge("max_execs", 1, at, lengths);
    if (line.budget !== undefined) this.lower(agent, line.budget, at);
    this.#touchOf(agent);
  }

  #ended(line: SpanRecord, agent: string): void {
    const at = Date.parse(line.ts);
    // Begun before a restart: close enough to tell which windows counted it.
    const begun = this.#running.get(line.span_id) ?? at - (line.duration_ms ?? 0);
    this.#running.delete(line.span_id);
    const lengths = windowsOf(line.budget?.windows_ms);
    for (const account of this.accountsOf(agent)) {
      account.charge("max_runtime_ms", line.duration_ms ?? line.charged_ms ?? 0, at, lengths);
      // Refused at the last step, by the kernel: nothing ran.
      if (neverStarted(line)) account.refund("max_execs", 1, begun);
    }
    this.#touchOf(agent);
  }

  /** Bytes are counted by connection: one may outlive the command that made it, whose own line says them once more. */
  #sent(line: SpanRecord, agent: string): void {
    const at = Date.parse(line.ts);
    const lengths = windowsOf(line.budget?.windows_ms);
    for (const account of this.accountsOf(agent))
      account.charge("max_egress_bytes", line.usage?.egress_bytes ?? 0, at, lengths);
    this.#touchOf(agent);
  }

  #lowered(line: SpanRecord, agent: string): void {
    if (line.budget !== undefined) this.lower(agent, line.budget, Date.parse(line.ts));
  }

  #reset(name: string): void {
    this.#accounts.get(name)?.reset();
    this.#touch(name);
  }

  #touchOf(agent: string): void {
    this.#touch(agent);
    if (this.#isLabel(agent)) this.#touch(SHARED);
  }

  #touch(name: string): void {
    this.#changes += 1;
    this.#changed.set(name, this.#changes);
  }
}

/** The lengths to count in: those of the policies, and always the usual one. */
function windowsOf(named: readonly number[] = USUAL): readonly number[] {
  return named.includes(USUAL_WINDOW_MS) ? named : [USUAL_WINDOW_MS, ...named];
}

const USUAL: readonly number[] = [USUAL_WINDOW_MS];

/** `internal` is a bug, after which nobody knows what ran. */
function neverStarted({ outcome, code }: SpanRecord): boolean {
  return outcome === "failed" && code !== "internal";
}
