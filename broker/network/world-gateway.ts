import { setTimeout as sleep } from "node:timers/promises";
import {
  type Captured,
  type CommandRun,
  type Dialled,
  timeLimit,
  type World,
  type WorldNetwork,
  type WorldViolation,
} from "../../world/backend.ts";
import type { SpanRecord } from "../spans/trace.ts";
import type { Allowance } from "./allowance.ts";
import { CommandNetwork } from "./command-network.ts";
import { Connection, type ConnectionEnd, type Outside, type WorldShare } from "./connection.ts";
import { type ConnectionFacts, newConnectionId, type Resident } from "./connection-span.ts";
import { Bound } from "./bound.ts";
import { HOST_INTERNAL, hostName } from "./names/names.ts";
import { judgeBy, type Reach } from "./reach.ts";
import type { Asking } from "./dns-answer.ts";
import { DnsStub, type Standing } from "./stub.ts";
import { SyntheticAddresses } from "./synthetic.ts";
import { judgeTarget, type Target, unresolvedWords, whyUnresolved } from "./target.ts";

/** A world gateway's dependencies on the broker. */
export type GatewayParts = {
  readonly resident: Resident;
  readonly outside: Outside;
  /** The rules in force, read for each name and connection. */
  readonly reach: () => Reach;
  /** The egress allowance of one connection, reserved until the connection's line is written. */
  readonly allowance: (id: string) => Allowance;
  /** Whether the agent's egress budget is used up. */
  readonly isSpent: () => boolean;
  readonly record: (facts: ConnectionFacts) => void;
  /** Records a refusal not attributed to a command. */
  readonly onViolation: (violation: WorldViolation) => void;
  readonly onFault: (what: string, error: unknown) => void;
};

/** Connections per world: each takes two sockets, and up to 100 KiB when one side reads too slowly. */
const MAX_OPEN = 2048;

/** Held first bytes per world: a thousand connections that begin with a large ClientHello at once. */
const MAX_HELD_BYTES = 8 * 1024 * 1024;

/** Concurrent lookups per world: a quarter of the resolver's bound for all worlds. */
const MAX_NAMES = 32;

/** Concurrent questions for the owner of a lookup: init scans the descriptors of the whole world for each. */
const MAX_ASKERS = 32;

/** Lookups per world that wait for the host's resolver; beyond this bound a name is taken to exist. */
const MAX_LOOKUPS = 256;

/** How long a lookup waits for the host's resolver: glibc asks again after 5 s. */
const LOOKUP_MS = 3000;

/** How long a lookup waits for its owner. Resolvers wait for seconds before they ask again. */
const ASKER_PATIENCE_MS = 1000;

/** Reverse names and service names: programs ask for them unprompted, and they lead to no connection. */
const NOBODYS = /\.arpa$|^_/;

type Open = { readonly connection: Connection; readonly id: string };

/** The names and connections of one world, up to the world's end. */
export class WorldGateway {
  readonly #world: World;
  readonly #network: WorldNetwork;
  readonly #parts: GatewayParts;
  readonly #stub: DnsStub;
  readonly #addresses = new SyntheticAddresses();
  readonly #commands = new Map<CommandRun, CommandNetwork>();
  /** Commands that are over and whose last questions for names may be unread. */
  readonly #asking = new Set<CommandNetwork>();
  readonly #open = new Set<Open>();
  readonly #askers = new Bound(MAX_ASKERS);
  readonly #lookups = new Bound(MAX_LOOKUPS);
  readonly #share: WorldShare = { heldBytes: new Bound(MAX_HELD_BYTES), names: new Bound(MAX_NAMES) };
  /** Addresses given to programs, and connections captured. */
  #uses = 0;
  #captured: Reach["captured"];
  /** Settles when the world has the newest rules. */
  #ruled: Promise<void> = Promise.resolve();

  constructor(world: World, network: WorldNetwork, parts: GatewayParts) {
    this.#world = world;
    this.#network = network;
    this.#parts = parts;
    this.#captured = parts.reach().captured;
    this.#stub = new DnsStub(network.takeDns(), {
      spell: hostName,
      decide: (name, asking) => this.#isKnown(name, asking),
      addressOf: (name) => {
        this.#uses += 1;
        return this.#addresses.addressOf(name);
      },
      standing: (name, asking) => this.#standingOf(name, asking),
      onRefused: (name, type, asking) => this.#refuseName(name, type, asking),
      onFault: (error) => parts.onFault("dns", error),
    });
    network.onConnection((captured) => this.#take(captured));
    void world.ended.then(() => this.#close());
  }

  /** Attributes connections and refusals to a command until its run closes. */
  register(
    run: CommandRun,
    started: SpanRecord,
    onViolation: (violation: WorldViolation) => void,
  ): CommandNetwork {
    const before = this.#uses + this.#stub.questions;
    const hasUsed = (): boolean => this.#uses + this.#stub.questions > before;
    const command = new CommandNetwork(started, onViolation, hasUsed);
    this.#commands.set(run, command);
    void run.closed.then(() => this.#forget(run, command));
    return command;
  }

  /** Applies the rules in force to the world and its open connections. */
  refresh(): void {
    const reach = this.#parts.reach();
    if (reach.captured !== this.#captured) {
      this.#captured = reach.captured;
      this.#ruled = this.#network.allow(reach.captured);
      this.#ruled.catch((error: unknown) => this.#parts.onFault("rules", error));
    }
    for (const { connection } of this.#open) connection.recheck(reach);
  }

  /** Settles when the world has the rules of the last `refresh`. Throws `WorldUnavailable`. */
  ruled(): Promise<void> {
    return this.#ruled;
  }

  /**
   * Forgets a closed command once its last questions and connections are here: a program may ask, connect, send and end before
   * anybody reads or accepts, and then nobody holds the socket. The reply of a command that used the network waits for them.
   */
  async #forget(run: CommandRun, command: CommandNetwork): Promise<void> {
    const mayDial = this.#uses > 0 || this.#captured.ranges.length > 0;
    const read = this.#read(command);
    const last = Promise.all([read, mayDial ? this.#network.flush() : undefined]).then(() => {});
    command.end(last);
    await last;
    this.#commands.delete(run);
  }

  async #read(command: CommandNetwork): Promise<void> {
    this.#asking.add(command);
    await this.#stub.idle();
    this.#asking.delete(command);
  }

  /**
   * Records the refusal of a command's TCP connection that no listener has seen, because the world's rules or the lack of a
   * route refused it. Does nothing for an address that the policies allow.
   */
  refuseDial(command: CommandNetwork | undefined, { address, port }: Dialled): void {
    const target = this.#targetOf({ address, port });
    if (target === undefined) return;
    const { blocked, verdict } = judgeTarget(this.#parts.reach(), target);
    if (!blocked) return;
    const [subject, message] = [wordOf(target), refusedWords(target, verdict.source)];
    this.#tell(command, { kind: "connection", subject, message });
  }

  #isKnown(name: string, asking: Asking): boolean {
    const reach = this.#parts.reach();
    const { blocked, denied, verdict } = judgeBy(reach, (rules) => rules.name(name));
    if (name === HOST_INTERNAL) return !denied;
    if (denied && !blocked && !NOBODYS.test(name))
      this.#forAsker(asking, (command) =>
        command?.observe(name, observedWords(reach, `not look up the name '${name}'`, verdict.source)),
      );
    return !blocked;
  }

  /** Asks nobody once the budget is used up: a name also carries bytes to its owner's servers. */
  #standingOf(name: string, asking: Asking): Standing | Promise<Standing> {
    if (name === HOST_INTERNAL || this.#parts.isSpent() || !this.#lookups.take(1)) return "found";
    return this.#lookUp(name, asking).finally(() => this.#lookups.giveBack(1));
  }

  /** A name that the host cannot resolve in time is taken to exist: its connection says why it fails. */
  async #lookUp(name: string, asking: Asking): Promise<Standing> {
    const [sole, running] = [this.#sole(), new Set(this.#commands.values())];
    const code = await whyUnresolved(this.#parts.reach(), name, timeLimit(LOOKUP_MS), this.#share.names);
    const standing = standingBy(code);
    if (code === null || standing === "found") return standing;
    const told = (command: CommandNetwork | undefined): void => {
      // A later command of the world has not asked.
      if (command !== undefined && running.has(command))
        command.fail(name, name, unresolvedWords(name, code));
    };
    if (sole === undefined) this.#forAsker(asking, told);
    else told(sole);
    return standing;
  }

  #take(captured: Captured): void {
    this.#uses += 1;
    const target = this.#targetOf(captured);
    if (target === undefined || this.#open.size >= MAX_OPEN) return refuseNow(captured);
    const reach = this.#parts.reach();
    const { blocked, denied, verdict } = judgeTarget(reach, target);
    const owner = this.#ownerOf(captured);
    if (blocked) {
      const message = refusedWords(target, verdict.source);
      void owner.then(({ command }) =>
        this.#tell(command, { kind: "connection", subject: wordOf(target), message }),
      );
      return refuseNow(captured);
    }
    if (this.#parts.isSpent()) {
      const message = `A connection to ${wordOf(target)} was refused: the budget of bytes that may be sent is used up`;
      void owner.then(({ command }) =>
        this.#tell(command, { kind: "limit", subject: "max_egress_bytes", message }),
      );
      return refuseNow(captured);
    }
    if (denied) {
      const would = `refuse a connection to ${wordOf(target)}`;
      const message = observedWords(reach, would, verdict.source);
      void owner.then(({ command }) => command?.observe(target.host, message));
    }
    if (!this.#parts.outside.connections.take(1)) return refuseNow(captured);
    void this.#serve(
      new Connection(captured, target, this.#parts.outside, this.#share),
      reach,
      denied,
      owner,
    );
  }

  async #serve(
    connection: Connection,
    reach: Reach,
    wouldDeny: boolean,
    asked: Promise<Owned>,
  ): Promise<void> {
    const begun = performance.now();
    const open: Open = { connection, id: newConnectionId() };
    this.#open.add(open);
    const added = asked.then(({ command }) => command?.add(`net:${wordOf(connection.target)}`, connection));
    const allowance = this.#parts.allowance(open.id);
    try {
      const end = await connection.run(reach, allowance);
      const { command, pid, program } = await asked;
      const { ended, address, reason, unread } = end;
      const { host, port } = connection.target;
      this.#parts.record({
        id: open.id,
        resident: this.#parts.resident,
        reach,
        connection: {
          ...{ host, port, address, program, pid, ended, reason },
          ...(unread === null ? {} : { unread }),
        },
        traffic: connection.traffic,
        durationMs: performance.now() - begun,
        wouldDeny,
        started: command?.started,
      });
      this.#tellEnd(command, connection.target, end);
    } catch (error) {
      this.#parts.onFault("connection", error);
    } finally {
      this.#open.delete(open);
      this.#parts.outside.connections.giveBack(1);
      (await added)?.();
    }
  }

  #tellEnd(
    command: CommandNetwork | undefined,
    target: Target,
    { refusal, ended, reason }: ConnectionEnd,
  ): void {
    const subject = wordOf(target);
    if (refusal !== null) this.#tell(command, { kind: "connection", subject, message: refusal });
    else if (ended === "failed" && reason !== null)
      command?.fail(subject, target.host, `The connection to ${subject} failed: ${reason}`);
    if (ended !== "cut" || reason !== "budget") return;
    const message = `The connection to ${subject} was cut: the budget of bytes that may be sent is used up`;
    this.#tell(command, { kind: "limit", subject: "max_egress_bytes", message });
  }

  #targetOf({ address, port }: Dialled): Target | undefined {
    const name = this.#addresses.nameOf(address);
    if (name !== undefined) return { kind: "name", host: name, port };
    return /^198\.1[89]\./.test(address) ? undefined : { kind: "address", host: address, port };
  }

  /**
   * Finds the command of a connection: the holder of the socket, else the only command that can have made the connection. Among
   * several commands, none of them can say how many bytes it sent.
   */
  #ownerOf({ inode }: Captured): Promise<Owned> {
    const possible = [...this.#commands.values()];
    const sole = possible.length === 1 ? possible[0] : undefined;
    const answer = this.#world.ownerOf(inode).then((owner) => {
      const command = owner === null ? sole : this.#commands.get(owner.run);
      if (command === undefined) for (const each of possible) each.lose();
      return { command, pid: owner?.pid ?? null, program: owner?.program ?? null };
    });
    for (const command of possible) command.expect(answer);
    return answer;
  }

  /** The only command that can have asked for a name; undefined when there are several. */
  #sole(): CommandNetwork | undefined {
    const possible = [...this.#commands.values()].filter((each) => !each.isOver || this.#asking.has(each));
    return possible.length === 1 ? possible[0] : undefined;
  }

  #refuseName(name: string, type: string, asking: Asking): void {
    const { verdict } = judgeBy(this.#parts.reach(), (rules) => rules.name(name));
    const message = `The name '${name}' was not looked up (${type}): net.allowed (${verdict.source}) does not allow it`;
    this.#forAsker(asking, (command) => this.#tell(command, { kind: "name", subject: name, message }));
  }

  /**
   * Calls `act` with the command that asked for a name: the sole command, or else the holder of the asking socket, with
   * undefined if nobody can tell. The reply waits until then, and so do the replies of the commands.
   */
  #forAsker({ asker, until }: Asking, act: (command: CommandNetwork | undefined) => void): void {
    const sole = this.#sole();
    if (sole !== undefined || this.#world.askerOf === undefined || !this.#askers.take(1)) return act(sole);
    const found = this.#world.askerOf(asker).finally(() => this.#askers.giveBack(1));
    const told = Promise.race([found, sleep(ASKER_PATIENCE_MS, null, { ref: false })]).then((owner) =>
      act(owner === null ? undefined : this.#commands.get(owner.run)),
    );
    until(told);
    for (const command of this.#commands.values()) command.expect(told);
  }

  /** Never throws: a command can fill the disk, and an uncaught error would end the broker and all worlds. */
  #tell(command: CommandNetwork | undefined, violation: WorldViolation): void {
    try {
      if (command === undefined) this.#parts.onViolation(violation);
      else command.refuse(violation);
    } catch (error) {
      this.#parts.onFault("a refusal's line", error);
    }
  }

  #close(): void {
    this.#stub.close();
    for (const { connection } of this.#open) connection.cut("its world has ended");
  }
}

type Owned = {
  readonly command: CommandNetwork | undefined;
  readonly pid: number | null;
  readonly program: string | null;
};

/** `code` of the resolver: of getaddrinfo (`ENOTFOUND`, `EAI_AGAIN`) or of a DNS server (`ENODATA`, `ESERVFAIL`). */
function standingBy(code: string | null): Standing {
  if (code === null || code === "EBUSY" || code === "ETIMEOUT") return "found";
  if (code === "ENOTFOUND") return "missing";
  return code === "ENODATA" ? "empty" : "unknown";
}

/** Phrased like the notice about a program start that an enforcing policy would refuse (broker/journey/notices.ts). */
function observedWords({ effective }: Reach, would: string, source: string): string {
  return `Policy '${effective.id}' only observes; with 'mode: enforce' it would ${would}: net.allowed (${source}) does not allow it`;
}

/** Says what to write into the policy: a program shows only a refused connection. */
function refusedWords(target: Target, source: string): string {
  const subject = wordOf(target);
  const why = `A connection to ${subject} was refused: net.allowed (${source}) does not allow it`;
  if (target.host.includes(":")) return `${why}, and a world has no IPv6. Use a name, or an IPv4 address`;
  if (target.kind === "name") return why;
  return `${why}. "substrate policy allow net ${subject}" adds it`;
}

function wordOf({ host, port }: Target): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** Refuses a captured connection with a reset, as for a closed port. */
function refuseNow({ socket }: Captured): void {
  socket.on("error", () => {});
  socket.resetAndDestroy();
}
