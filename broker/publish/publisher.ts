/** Ports of the broker's host forwarded into worlds. */
import type { World } from "../../world/backend.ts";
import { HostPort } from "./host-port.ts";
import { noNetwork, notOpened, noWorld, type Problem, publishedAlready } from "./problems.ts";
import type { Session } from "../model/place.ts";
import { eventSpan } from "../spans/event-span.ts";
import { redact } from "../secrets/redact.ts";
import type { SpanRecord } from "../spans/trace.ts";
import type { Effective } from "../model/effective.ts";

/** Requester of a port: a policy's `world.publish`, or an operator by hand. */
export type Asker = "policy" | "operator";

/** A published port, or a policy's port whose opening failed. */
export type Publication = {
  readonly port: number;
  readonly hostPort: number;
  readonly by: Asker;
  /** Open connections. */
  readonly connections: number;
  readonly problem: Problem | null;
};

/** An event for the trace. */
export type PublishEvent = {
  readonly event: "opened" | "closed" | "failed";
  readonly session: string;
  readonly port: number;
  readonly hostPort: number;
  readonly by: Asker;
  /** Reason of a failure or a close. */
  readonly message: string | null;
};

export type PublisherParts = {
  /** The session's world, present or in the making; undefined without a world. */
  readonly worldOf: (session: string) => Promise<World> | undefined;
  /** Describes the session's owner. */
  readonly ownerOf: (session: string) => string;
  /** Must not throw. */
  readonly onEvent: (event: PublishEvent) => void;
};

type Claim = {
  readonly session: string;
  readonly port: HostPort;
  readonly askers: Set<Asker>;
  /** Null when open, else the errno name. */
  readonly opened: Promise<string | null>;
  isOpen: boolean;
};

/** The ports in a session's policies. */
type Wish = {
  readonly hash: string;
  readonly ports: readonly number[];
  readonly problems: Map<number, Problem>;
  readonly triedAt: number;
  readonly done: Promise<void>;
};

/** Published connections per broker; each takes two descriptors. */
const MAX_ALL = 4096;

/** Interval before a command retries a failed port. */
const RETRY_MS = 1000;

/**
 * Publishes ports. A port belongs to a session, leads to the session's current world, and closes when the session has
 * no world. A host port serves a single session: the first to ask.
 */
export class Publisher {
  readonly #parts: PublisherParts;
  readonly #claims = new Map<number, Claim>();
  readonly #wishes = new Map<string, Wish>();

  constructor(parts: PublisherParts) {
    this.#parts = parts;
  }

  /** Opens a port for an operator. `wasOpen`: the port already led there. */
  async open(session: string, port: number, hostPort: number): Promise<{ wasOpen: boolean } | Problem> {
    const world = await this.#parts.worldOf(session)?.catch(() => undefined);
    if (world === undefined) return noWorld(port);
    if (world.network === null) return noNetwork(port, world.isolation.net);
    const wasOpen = this.#claims.has(hostPort);
    const failed = await this.#claim(session, port, hostPort, "operator");
    if (failed === null) return { wasOpen };
    if (typeof failed !== "string") return failed;
    return failed === "ECANCELED" ? noWorld(port) : await notOpened(hostPort, failed);
  }

  /**
   * Withdraws an operator's request. `kept`: stays open for the policy too. `policy`: only the policy asked for the
   * port.
   */
  close(session: string, port: number, hostPort: number): "closed" | "kept" | "policy" | "unknown" {
    const claim = this.#claims.get(hostPort);
    if (claim?.session !== session || claim.port.port !== port) return "unknown";
    const isPolicys = claim.askers.has("policy");
    if (isPolicys && !claim.askers.has("operator")) return "policy";
    this.#release(claim, "operator", "an operator closed it");
    return isPolicys ? "kept" : "closed";
  }

  /**
   * Opens and closes ports of a session to match its policies; `hash` covers all of them. Cheap when nothing has
   * changed. A port that cannot be opened is reported once to `onEvent` and retried by later commands.
   */
  async follow(session: string, world: World, hash: string, ports: readonly number[]): Promise<void> {
    const before = this.#wishes.get(session);
    if (before === undefined && ports.length === 0) return;
    if (before?.hash === hash && !isDue(before)) return await before.done;
    const problems = new Map([...(before?.problems ?? [])].filter(([port]) => ports.includes(port)));
    const wish = { hash, ports, problems, triedAt: performance.now() };
    const done = this.#bring(session, world, wish);
    if (ports.length === 0) this.#wishes.delete(session);
    else this.#wishes.set(session, { ...wish, done });
    await done;
  }

  /** Closes all ports of a session whose world has ended. */
  closeAll(session: string, cause: string): void {
    this.#wishes.delete(session);
    for (const claim of this.#of(session)) this.#drop(claim, cause);
  }

  /** Lists the ports of a session, open ports first. */
  of(session: string): readonly Publication[] {
    const open = this.#of(session).map(({ port: { port, hostPort, connections }, askers }) => {
      return { port, hostPort, by: askerOf(askers), connections, problem: null };
    });
    const failed = [...(this.#wishes.get(session)?.problems ?? [])].map(([port, problem]) => {
      return { port, hostPort: port, by: "policy" as const, connections: 0, problem };
    });
    return [...open, ...failed];
  }

  /** Closes all ports when the broker stops. */
  end(): void {
    this.#wishes.clear();
    for (const claim of [...this.#claims.values()]) this.#drop(claim, "the broker stops");
  }

  async #bring(session: string, world: World, wish: Omit<Wish, "done">): Promise<void> {
    for (const claim of this.#of(session))
      if (claim.askers.has("policy") && !wish.ports.includes(claim.port.hostPort))
        this.#release(claim, "policy", "its policy no longer publishes it");
    const tried = wish.ports.map((port) => this.#tryForPolicy(session, world, port, wish.problems));
    await Promise.all(tried);
  }

  async #tryForPolicy(
    session: string,
    world: World,
    port: number,
    problems: Map<number, Problem>,
  ): Promise<void> {
    const failed =
      world.network === null
        ? noNetwork(port, world.isolation.net)
        : await this.#claim(session, port, port, "policy");
    if (failed === "ECANCELED") return;
    if (failed === null) problems.delete(port);
    else if (typeof failed !== "string") this.#complain(session, port, failed, problems);
    // Finding the port's holder is slow, so the command does not wait.
    else void notOpened(port, failed).then((problem) => this.#complain(session, port, problem, problems));
  }

  #complain(session: string, port: number, problem: Problem, problems: Map<number, Problem>): void {
    // The port was opened while its holder was looked up.
    if (problem.kind !== "published" && this.#claims.get(port)?.session === session) return;
    const isKnown = problems.get(port)?.kind === problem.kind;
    problems.set(port, problem);
    if (isKnown) return;
    const { message } = problem;
    this.#parts.onEvent({ event: "failed", session, port, hostPort: port, by: "policy", message });
  }

  /** Returns null when the port leads to the session's world, or an errno name when the kernel refuses. */
  async #claim(session: string, port: number, hostPort: number, by: Asker): Promise<Problem | string | null> {
    if (this.#parts.worldOf(session) === undefined) return "ECANCELED";
    const known = this.#claims.get(hostPort);
    if (known !== undefined && (known.session !== session || known.port.port !== port))
      return publishedAlready(hostPort, this.#parts.ownerOf(known.session), known.port.port);
    const claim = known ?? this.#make(session, port, hostPort);
    claim.askers.add(by);
    const failed = await claim.opened;
    if (failed !== null && this.#claims.get(hostPort) === claim) this.#claims.delete(hostPort);
    if (failed === null && !claim.isOpen) {
      claim.isOpen = true;
      this.#tell("opened", claim, null);
    }
    return failed;
  }

  #make(session: string, port: number, hostPort: number): Claim {
    const parts = {
      port,
      hostPort,
      worldOf: () => this.#parts.worldOf(session),
      hasRoom: () => this.#connections() < MAX_ALL,
    };
    const made = new HostPort(parts);
    const claim = { session, port: made, askers: new Set<Asker>(), opened: made.listen(), isOpen: false };
    this.#claims.set(hostPort, claim);
    return claim;
  }

  #release(claim: Claim, by: Asker, cause: string): void {
    if (claim.askers.size > 1) claim.askers.delete(by);
    else this.#drop(claim, cause);
  }

  #drop(claim: Claim, cause: string): void {
    this.#claims.delete(claim.port.hostPort);
    claim.port.close();
    if (claim.isOpen) this.#tell("closed", claim, cause);
  }

  #tell(event: "opened" | "closed", claim: Claim, message: string | null): void {
    const { session, askers } = claim;
    const { port, hostPort } = claim.port;
    this.#parts.onEvent({ event, session, port, hostPort, by: askerOf(askers), message });
  }

  #of(session: string): readonly Claim[] {
    return [...this.#claims.values()].filter((claim) => claim.session === session);
  }

  #connections(): number {
    return [...this.#claims.values()].reduce((sum, { port }) => sum + port.connections, 0);
  }
}

/** An operator's request outlives an edit of the policy, so the operator is named. */
function askerOf(askers: ReadonlySet<Asker>): Asker {
  return askers.has("operator") ? "operator" : "policy";
}

function isDue({ problems, triedAt }: Wish): boolean {
  return problems.size > 0 && performance.now() - triedAt > RETRY_MS;
}

/**
 * Makes the trace line of an event. The line has no agent, because its message may name other agents and host programs.
 * `session` is undefined for a forgotten session.
 */
export function publishSpan(happened: PublishEvent, session: Session | undefined): SpanRecord {
  const { event, port, hostPort, by, message } = happened;
  return eventSpan({
    event_type: "world",
    session_id: happened.session,
    cwd: session?.project ?? null,
    outcome: event === "failed" ? "failed" : "ended",
    published: { event, port, host_port: hostPort, by },
    ...(message === null ? {} : { message: redact(message, "message").text }),
  });
}

/** Applies the published ports of the policies to a session's warm world. Never rejects. */
export function followPolicy(
  publisher: Publisher,
  { id }: Session,
  world: World,
  { hash, policies }: Effective,
): Promise<void> {
  return publisher.follow(id, world, hash, publishedBy(policies));
}

/** Lists the ports named in every policy. */
function publishedBy(policies: Effective["policies"]): readonly number[] {
  const [first = [], ...others] = policies.map(({ document }) => document.world?.publish ?? []);
  return [...new Set(first)].filter((port) => others.every((ports) => ports.includes(port)));
}
