/** The networks of all worlds of a broker: which rules hold in each, what they may send, what is recorded of them. */
import type { World, WorldViolation } from "../../world/backend.ts";
import { type Budgets, termsOf } from "../budgets/budgets.ts";
import type { Effective } from "../model/effective.ts";
import { eventSpan } from "../spans/event-span.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { Violations } from "../spans/violations.ts";
import { type Allowance, allowanceOf, followingAllowance } from "./allowance.ts";
import { Bound } from "./bound.ts";
import { connectionSpan, type Counted, type Resident } from "./connection-span.ts";
import { OwnAddresses } from "./names/internal-addresses.ts";
import { Pacer } from "./pacer.ts";
import type { Reach, Reaches } from "./reach.ts";
import { ReadBuffers } from "./read-buffers.ts";
import { type GatewayParts, WorldGateway } from "./world-gateway.ts";
import { readFileSync } from "node:fs";

export type GatewayOptions = {
  readonly reaches: Reaches;
  readonly budgets: Budgets;
  readonly record: (line: SpanRecord) => void;
  readonly onFault: (what: string, error: unknown) => void;
};

/** Whose world it is, and under which policies. */
export type Tenancy = {
  readonly agent: string;
  readonly session: string;
  readonly project: string;
  /** The policies as they are now; undefined when none loads, and then what held last still does. */
  readonly effective: () => Effective | undefined;
};

/** Of one world: with a look at the policies' files, and as they were last seen. */
type Ruling = { readonly now: () => Reach; readonly last: () => Reach };

type Served = { readonly gateway: WorldGateway; tenancy: Tenancy; reach: Reach };

export class Gateway {
  readonly #options: GatewayOptions;
  readonly #outside = {
    own: new OwnAddresses(),
    buffers: new ReadBuffers(),
    connections: new Bound(mostConnections()),
  };
  readonly #lines: ConnectionLines;
  readonly #served = new Map<World, Served>();
  /** One for each agent and rate: its worlds share it. */
  readonly #pacers = new Map<string, Pacer>();

  constructor(options: GatewayOptions) {
    this.#options = options;
    const { record: write, onFault } = options;
    this.#lines = new ConnectionLines({ write, onFault: (error) => onFault("a connection's line", error) });
  }

  /** What a command under these policies may reach; the first time for a preset its tool is asked. */
  reach(effective: Effective, project: string): Promise<Reach> {
    return this.#options.reaches.fresh(effective, project);
  }

  /**
   * Serves a world, or lets it go on under the policies of its newest command. Settles when its rules are those.
   * Throws `WorldUnavailable` when they cannot be made so; what held before still holds.
   */
  async serve(world: World, tenancy: Tenancy, reach: Reach): Promise<void> {
    const known = this.#served.get(world);
    if (known !== undefined) {
      known.tenancy = tenancy;
      this.#use(known, reach);
      return await known.gateway.ruled();
    }
    if (world.network === null) return;
    const holds: { current: Served | undefined } = { current: undefined };
    const parts = this.#partsOf(world, tenancy, {
      now: () => this.#now(holds.current) ?? reach,
      last: () => holds.current?.reach ?? reach,
    });
    const gateway = new WorldGateway(world, world.network, parts);
    const served = { gateway, tenancy, reach };
    holds.current = served;
    this.#served.set(world, served);
    void world.ended.then(() => this.#forget(world));
  }

  /** The network of a world; undefined when it has none. */
  of(world: World): WorldGateway | undefined {
    return this.#served.get(world)?.gateway;
  }

  /** A policy was read again: each world follows at once, and what it may no longer reach is cut. */
  recheck(): void {
    for (const served of this.#served.values()) this.#now(served);
  }

  close(): void {
    this.#lines.end();
    for (const pacer of this.#pacers.values()) pacer.stop();
    this.#pacers.clear();
  }

  /** Compares the policies' files first, as a command's decision does. */
  #now(served: Served | undefined): Reach | undefined {
    if (served === undefined) return undefined;
    const effective = served.tenancy.effective() ?? served.reach.effective;
    const { project } = served.tenancy;
    if (effective.hash !== served.reach.effective.hash) {
      this.#use(served, this.#options.reaches.now(effective, project));
      // A preset that the policy has not had before stands for nothing until its tool was asked.
      this.#options.reaches.fresh(effective, project).then(
        () => this.#now(served),
        (error: unknown) => this.#options.onFault("presets", error),
      );
    }
    const newest = this.#options.reaches.now(effective, project);
    if (newest !== served.reach) this.#use(served, newest);
    return served.reach;
  }

  #use(served: Served, reach: Reach): void {
    if (served.reach === reach) return;
    served.reach = reach;
    served.gateway.refresh();
  }

  #partsOf(world: World, { agent, session }: Tenancy, reach: Ruling): GatewayParts {
    const { record, onFault } = this.#options;
    const resident = { agent, session, world: world.id };
    const violations = new Violations((violation) => record(violationOf(resident, reach.now(), violation)));
    world.ended
      .then(() => violations.finish())
      .catch((error: unknown) => onFault("how often a world was refused", error));
    return {
      resident,
      outside: this.#outside,
      reach: reach.now,
      allowance: (id) => this.#allowance(id, resident, reach.last),
      isSpent: () => this.#options.budgets.hasSentAll(agent, reach.last().allowances),
      record: (facts) => this.#lines.add(connectionSpan(facts, countedIn(facts.reach))),
      onViolation: (violation) => violations.add(violation),
      onFault,
    };
  }

  #forget(world: World): void {
    this.#served.delete(world);
    for (const [key, pacer] of this.#pacers) {
      if (!key.startsWith(`world ${world.id} `)) continue;
      pacer.stop();
      this.#pacers.delete(key);
    }
  }

  /** By the limits that hold when a byte is to be sent: a connection may last longer than the policy that it began under. */
  #allowance(
    id: string,
    { agent, world }: Resident,
    reach: () => Reach,
  ): ReturnType<GatewayParts["allowance"]> {
    const { budgets } = this.#options;
    budgets.openConnection(id, agent, () => reach().allowances);
    const bytes = {
      reserve: (wanted: number) => budgets.reserveBytes(id, wanted),
      settle: (reserved: number, used: number) => budgets.settleBytes(id, reserved, used),
    };
    const paced = (bytesPerSecond: number | undefined): Allowance =>
      allowanceOf(
        bytesPerSecond === undefined
          ? []
          : [this.#pacer(`world ${world}`, bytesPerSecond), this.#pacer(`agent ${agent}`, bytesPerSecond)],
        [bytes],
      );
    let rate = reach().bytesPerSecond;
    let current = paced(rate);
    return followingAllowance(() => {
      const now = reach().bytesPerSecond;
      if (now !== rate) [rate, current] = [now, paced(now)];
      return current;
    });
  }

  #pacer(whose: string, bytesPerSecond: number): Pacer {
    const key = `${whose} ${bytesPerSecond}`;
    const known = this.#pacers.get(key) ?? new Pacer(bytesPerSecond);
    this.#pacers.set(key, known);
    return known;
  }
}

function countedIn({ allowances }: Reach): Counted {
  const terms = termsOf({
    allowances,
    named: undefined,
  });
  return Object.keys(terms).length === 0 ? {} : { budget: terms };
}

function violationOf(
  { agent, session, world }: Resident,
  { effective }: Reach,
  { kind, subject, message }: WorldViolation,
): SpanRecord {
  return eventSpan({
    event_type: "violation",
    session_id: session,
    world_id: world,
    agent_id: agent,
    policy_id: effective.id,
    policy_hash: effective.beyond?.policyHash ?? effective.hash,
    policy_commit: effective.commit,
    outcome: "refused",
    violation: { kind, subject },
    message,
  });
}

/** How often what could not be written is tried again. */
const AGAIN_MS = 1000;

/** Each is a kilobyte or two. Of one more, nothing is left but its bytes, which stay reserved. */
const MAX_LATE = 10_000;

type ConnectionLinesOptions = {
  /** Throws when the trace cannot be written. */
  readonly write: (line: SpanRecord) => void;
  readonly onFault: (error: unknown) => void;
};

/**
 * Lines of connections on their way into the trace. A command can fill the disk: what it sent then must not count as nothing.
 * Until a line is written, its bytes are reserved.
 */
export class ConnectionLines {
  readonly #options: ConnectionLinesOptions;
  readonly #late: SpanRecord[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ConnectionLinesOptions) {
    this.#options = options;
  }

  /** Writes a line, or keeps it until there is room. Never throws. */
  add(line: SpanRecord): void {
    if (this.#late.length >= MAX_LATE)
      return this.#options.onFault(
        new Error(`${MAX_LATE} lines of connections wait: ${line.span_id} has none`),
      );
    this.#late.push(line);
    if (this.#timer === undefined) this.#write();
  }

  /** Tries a last time. */
  end(): void {
    clearTimeout(this.#timer);
    this.#write();
    clearTimeout(this.#timer);
  }

  /** In their order: the first that is not taken keeps the others waiting. */
  #write(): void {
    this.#timer = undefined;
    try {
      for (let line = this.#late[0]; line !== undefined; line = this.#late[0]) {
        this.#options.write(line);
        this.#late.shift();
      }
    } catch (error) {
      this.#options.onFault(error);
      this.#timer = setTimeout(() => this.#write(), AGAIN_MS);
      this.#timer.unref();
    }
  }
}

/** How many connections the broker's descriptors are enough for. */

/** A connection has one to the world and one to the outside. */
const OF_CONNECTION = 2;

/** Half of the descriptors are for all else: agents' requests, worlds, outputs, files. */
const SHARE = 0.5;

/** Where no limit is told, or none is set. */
const WITHOUT_LIMIT = 65_536;

/**
 * Of all worlds together. Without a bound one command could open as many as the broker has descriptors for, and then
 * nobody is answered any more, the operator neither.
 *
 * @param limits text as of /proc/self/limits (proc_pid_limits(5)); Node raises its soft limit to the hard one.
 */
export function mostConnections(limits = readFileSync("/proc/self/limits", "utf8")): number {
  const soft = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
  const descriptors = soft === undefined ? WITHOUT_LIMIT : Math.min(Number(soft), WITHOUT_LIMIT);
  return Math.floor((descriptors * SHARE) / OF_CONNECTION);
}
