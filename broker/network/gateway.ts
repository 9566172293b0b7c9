/** The networks of all worlds of a broker: network rules in force, egress limits, trace lines. */
import type { World, WorldViolation } from "../../world/backend.ts";
import { type Budgets, termsOf } from "../budgets/budgets.ts";
import { descriptorLimit } from "../model/descriptors.ts";
import type { Effective } from "../model/effective.ts";
import { eventSpan } from "../spans/event-span.ts";
import type { SpanRecord } from "../spans/trace.ts";
import { Violations } from "../spans/violations.ts";
import { type Allowance, allowanceOf, followingAllowance } from "./allowance.ts";
import { Bound } from "./bound.ts";
import { connectionSpan, type Counted, type Resident } from "./connection-span.ts";
import type { PolicyNet } from "./names/entries.ts";
import { OwnAddresses } from "./names/internal-addresses.ts";
import { Pacer } from "./pacer.ts";
import type { Reach, Reaches } from "./reach.ts";
import { ReadBuffers } from "./read-buffers.ts";
import { type GatewayParts, WorldGateway } from "./world-gateway.ts";

export type GatewayOptions = {
  readonly reaches: Reaches;
  readonly budgets: Budgets;
  readonly record: (line: SpanRecord) => void;
  /** Never throws. */
  readonly observe: (line: SpanRecord) => void;
  readonly onFault: (what: string, error: unknown) => void;
};

/** A world's owner and its policies. */
export type Tenancy = {
  readonly agent: string;
  readonly session: string;
  readonly project: string;
  /**
   * The policies now in force; undefined when their files fail to load: the last loaded policies then stay in force.
   */
  readonly effective: () => Effective | undefined;
};

/** The reach of one world. `now` rereads changed policy files first; `last` does not. */
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
  /** By agent or world, and rate: all connections of an agent share a pacer. */
  readonly #pacers = new Map<string, Pacer>();

  constructor(options: GatewayOptions) {
    this.#options = options;
    const { record: write, onFault } = options;
    this.#lines = new ConnectionLines({ write, onFault: (error) => onFault("a connection's line", error) });
  }

  /** Resolves the reach of a command under these policies. A preset's first use asks the preset's tool. */
  reach(effective: Effective, project: string): Promise<Reach> {
    return this.#options.reaches.fresh(effective, project);
  }

  /**
   * Starts the network of a world, or puts a warm world under the policies of its newest command. Settles when the
   * world has these rules. Throws `WorldUnavailable` when the world cannot take them; the old rules then stay in force.
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

  /** Asks the tools of a policy's presets before a command needs them. */
  askAhead(net: PolicyNet): void {
    this.#options.reaches.askAhead(net);
  }

  /** The network of a world; undefined for a world without network. */
  of(world: World): WorldGateway | undefined {
    return this.#served.get(world)?.gateway;
  }

  /** Applies reloaded policies to all worlds at once and cuts connections no longer allowed. */
  recheck(): void {
    for (const served of this.#served.values()) this.#now(served);
  }

  close(): void {
    this.#lines.end();
    for (const pacer of this.#pacers.values()) pacer.stop();
    this.#pacers.clear();
  }

  /** Rereads changed policy files first, like the decision on a command. */
  #now(served: Served | undefined): Reach | undefined {
    if (served === undefined) return undefined;
    const effective = served.tenancy.effective() ?? served.reach.effective;
    const { project } = served.tenancy;
    if (effective.hash !== served.reach.effective.hash) {
      this.#use(served, this.#options.reaches.now(effective, project));
      // A preset new to the policy allows nothing until its tool has answered.
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
    const { observe, onFault } = this.#options;
    const resident = { agent, session, world: world.id };
    const violations = new Violations((violation) => observe(violationOf(resident, reach.now(), violation)));
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

  /** Uses the limits in force when a byte is sent: a connection may outlive the policy at its start. */
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

/** Retry interval for lines that could not be written. */
const AGAIN_MS = 1000;

/** Bound on queued lines of one or two kilobytes. Any further line is lost; its bytes stay reserved. */
const MAX_LATE = 10_000;

type ConnectionLinesOptions = {
  /** Throws when the trace cannot be written. */
  readonly write: (line: SpanRecord) => void;
  readonly onFault: (error: unknown) => void;
};

/**
 * Queue of connection lines for the trace. A command can fill the disk, and its egress must count even then: a line's
 * bytes stay reserved until the line is written.
 */
export class ConnectionLines {
  readonly #options: ConnectionLinesOptions;
  readonly #late: SpanRecord[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ConnectionLinesOptions) {
    this.#options = options;
  }

  /** Writes a line, or queues it until the disk has room. Never throws. */
  add(line: SpanRecord): void {
    if (this.#late.length >= MAX_LATE)
      return this.#options.onFault(
        new Error(`${MAX_LATE} lines of connections wait: ${line.span_id} has none`),
      );
    this.#late.push(line);
    if (this.#timer === undefined) this.#write();
  }

  /** Tries once more to write all queued lines, then stops. */
  end(): void {
    clearTimeout(this.#timer);
    this.#write();
    clearTimeout(this.#timer);
  }

  /** Writes in order: a failed line holds back its successors. */
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

/** Each connection takes two sockets. */
const OF_CONNECTION = 2;

/** Half of the descriptors stay free for agents' requests, worlds, outputs and files. */
const SHARE = 0.5;

/**
 * Computes the most connections of all worlds together. Without a bound one command could take all of the broker's
 * descriptors, and the broker could answer nobody, not even the operator.
 */
export function mostConnections(limits?: string): number {
  return Math.floor((descriptorLimit(limits) * SHARE) / OF_CONNECTION);
}
