/** The accounts, rebuilt from the lines of the trace: the trace decides how much was used. */
import type { Database, RootDatabase } from "lmdb";
import type { BudgetTerms } from "../../schemas/generated/types.ts";
import type { Changes, Follower } from "../spans/follower.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { Account, type Meter } from "./account.ts";
import { USUAL_WINDOW_MS } from "./limits.ts";

/** Name of the account shared by all labels; not a valid agent name. */
export const SHARED = "+shared";

/** Interval of dropping idle accounts. */
const SWEEP_MS = 60_000;

export type Clock = () => number;

export class Ledger implements Follower {
  readonly #isLabel: (agent: string) => boolean;
  readonly #now: Clock;
  readonly #accounts = new Map<string, Account>();
  /** Running commands, with the time of their charge. */
  readonly #running = new Map<string, number>();
  /** Accounts changed since the last commit; the number distinguishes later changes from earlier ones. */
  readonly #changed = new Map<string, number>();
  #changes = 0;
  #sweptAt = 0;
  #database: Database<readonly Meter[], string> | undefined;

  /** `isLabel`: whether an agent has no socket of its own, and so shares the labels' budget. */
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
    // Programs reported by shims run on the host and are not charged.
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

  /** Returns the time from which the trace must be read again: the first use of the oldest running window. */
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

  /** Returns the accounts charged by an agent's command: its own, and for a label the shared account. */
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

  /** Returns an account for reading; creates none. */
  find(name: string): Account | undefined {
    return this.#accounts.get(name);
  }

  /** Names of agents with any counted use. */
  inUse(): readonly string[] {
    const now = this.#now();
    return [...this.#accounts].filter(([, account]) => !account.isIdle(now)).map(([name]) => name);
  }

  /** Binds an agent to limits named by its call, until its windows end. */
  lower(agent: string, { named, windows_ms: lengths }: BudgetTerms, at: number): void {
    if (named === undefined) return;
    this.account(agent).lower(named, at, lengths ?? USUAL);
    this.#touch(agent);
  }

  /** Drops idle accounts. */
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
    // Begun before a restart: this estimate is close enough to choose the windows that counted the command.
    const begun = this.#running.get(line.span_id) ?? at - (line.duration_ms ?? 0);
    this.#running.delete(line.span_id);
    const lengths = windowsOf(line.budget?.windows_ms);
    for (const account of this.accountsOf(agent)) {
      account.charge("max_runtime_ms", line.duration_ms ?? line.charged_ms ?? 0, at, lengths);
      // The kernel refused the start at the last step, so no command ran.
      if (neverStarted(line)) account.refund("max_execs", 1, begun);
    }
    this.#touchOf(agent);
  }

  /** Counts bytes by connection, since a connection may outlive its command. The command's own line repeats the bytes. */
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

/** The window lengths to count in: the policies' lengths, and always the usual length. */
function windowsOf(named: readonly number[] = USUAL): readonly number[] {
  return named.includes(USUAL_WINDOW_MS) ? named : [USUAL_WINDOW_MS, ...named];
}

const USUAL: readonly number[] = [USUAL_WINDOW_MS];

/** Whether the command never started. `internal` is a bug, after which the command may have run. */
function neverStarted({ outcome, code }: SpanRecord): boolean {
  return outcome === "failed" && code !== "internal";
}
