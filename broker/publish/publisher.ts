/** The ports of this broker's host that lead into worlds. */
import type { World } from "../../world/backend.ts";
import { HostPort } from "./host-port.ts";
import { noNetwork, notOpened, noWorld, type Problem, publishedAlready } from "./problems.ts";
import type { Session } from "../model/place.ts";
import { eventSpan } from "../spans/event-span.ts";
import { redact } from "../secrets/redact.ts";
import type { SpanRecord } from "../spans/trace.ts";
import type { Effective } from "../model/effective.ts";

/** Who asked for it: `world.publish` of a policy, or an operator by hand. */
export type Asker = "policy" | "operator";

/** A port that leads into a world, or one that its policy asks for and that does not. */
export type Publication = {
  readonly port: number;
  readonly hostPort: number;
  readonly by: Asker;
  /** Open now. */
  readonly connections: number;
  readonly problem: Problem | null;
};

/** For the record. */
export type PublishEvent = {
  readonly event: "opened" | "closed" | "failed";
  readonly session: string;
  readonly port: number;
  readonly hostPort: number;
  readonly by: Asker;
  /** Why it failed or was closed. */
  readonly message: string | null;
};

export type PublisherParts = {
  /** The session's world as it is now, or is being made; undefined without one. */
  readonly worldOf: (session: string) => Promise<World> | undefined;
  /** Whose session that is, in words. */
  readonly ownerOf: (session: string) => string;
  /** Must not throw. */
  readonly onEvent: (event: PublishEvent) => void;
};

type Claim = {
  readonly session: string;
  readonly port: HostPort;
  readonly askers: Set<Asker>;
  /** Null when it is open, else the errno name. */
  readonly opened: Promise<string | null>;
  isOpen: boolean;
};

/** What a session's policies publish. */
type Wish = {
  readonly hash: string;
  readonly ports: readonly number[];
  readonly problems: Map<number, Problem>;
  readonly triedAt: number;
  readonly done: Promise<void>;
};

/** All published connections of a broker; each takes two of its descriptors. */
const MAX_ALL = 4096;

/** How soon a port that could not be opened is tried again, with a command. */
const RETRY_MS = 1000;

/**
 * Each port belongs to a session, leads to whatever world that has now, and is closed when it has none. Every port of the
 * host is one session's at a time: who came first has it.
 */
export class Publisher {
  readonly #parts: PublisherParts;
  readonly #claims = new Map<number, Claim>();
  readonly #wishes = new Map<string, Wish>();

  constructor(parts: PublisherParts) {
    this.#parts = parts;
  }

  /** Opens a port for an operator; `wasOpen`: it led there already. */
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

  /** Takes an operator's wish back. `kept`: the policy publishes it too, so it stays open; `policy`: the policy alone does. */
  close(session: string, port: number, hostPort: number): "closed" | "kept" | "policy" | "unknown" {
    const claim = this.#claims.get(hostPort);
    if (claim?.session !== session || claim.port.port !== port) return "unknown";
    const isPolicys = claim.askers.has("policy");
    if (isPolicys && !claim.askers.has("operator")) return "policy";
    this.#release(claim, "operator", "an operator closed it");
    return isPolicys ? "kept" : "closed";
  }

  /**
   * Brings the ports of a session to what its policies publish; `hash` is theirs together. It costs a look when nothing has
   * changed. What cannot be opened is told to `onEvent`, once, and tried again with later commands.
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

  /** The session has no world any more. */
  closeAll(session: string, cause: string): void {
    this.#wishes.delete(session);
    for (const claim of this.#of(session)) this.#drop(claim, cause);
  }

  /** The ports of a session, open ones first. */
  of(session: string): readonly Publication[] {
    const open = this.#of(session).map(({ port: { port, hostPort, connections }, askers }) => {
      return { port, hostPort, by: askerOf(askers), connections, problem: null };
    });
    const failed = [...(this.#wishes.get(session)?.problems ?? [])].map(([port, problem]) => {
      return { port, hostPort: port, by: "policy" as const, connections: 0, problem };
    });
    return [...open, ...failed];
  }

  /** The broker stops. */
  end(): void {
    this.#wishes.clear();
    for (const claim of [...this.#claims.values()]) this.#drop(claim, "the broker stops");
  }

  async #bring(session: string, world: World, wish: Omit<Wish, "done">): Promise<void> {
    for (const claim of this.#of(session))
      if (claim.askers.has("policy") && !wish.ports.includes(claim.port.hostPort))
        this.#release(claim, "policy", "its policy publishes it no more");
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
    // Who has the port is found out beside the command, which need not wait for it.
    else void notOpened(port, failed).then((problem) => this.#complain(session, port, problem, problems));
  }

  #complain(session: string, port: number, problem: Problem, problems: Map<number, Problem>): void {
    // It was found out slowly, and the port is open by now.
    if (problem.kind !== "published" && this.#claims.get(port)?.session === session) return;
    const isKnown = problems.get(port)?.kind === problem.kind;
    problems.set(port, problem);
    if (isKnown) return;
    const { message } = problem;
    this.#parts.onEvent({ event: "failed", session, port, hostPort: port, by: "policy", message });
  }

  /** Null when the port leads to the session's world now, an errno name when the kernel refuses it. */
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

/** An operator's wish outlives an edit of the policy, so it is the one to name. */
function askerOf(askers: ReadonlySet<Asker>): Asker {
  return askers.has("operator") ? "operator" : "policy";
}

function isDue({ problems, triedAt }: Wish): boolean {
  return problems.size > 0 && performance.now() - triedAt > RETRY_MS;
}

/** The lines that published ports leave in the trace. They belong to no agent: they name other agents and host programs. */

/** `session` is undefined when nobody knows it any more. */
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

/** Brings the ports of a session to what its policies publish; `world` is its warm one. Never rejects. */
export function followPolicy(
  publisher: Publisher,
  { id }: Session,
  world: World,
  { hash, policies }: Effective,
): Promise<void> {
  return publisher.follow(id, world, hash, publishedBy(policies));
}

/** Of two policies, what both name. */
function publishedBy(policies: Effective["policies"]): readonly number[] {
  const [first = [], ...others] = policies.map(({ document }) => document.world?.publish ?? []);
  return [...new Set(first)].filter((port) => others.every((ports) => ports.includes(port)));
}
