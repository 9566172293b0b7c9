import type { Captured, WorldSocket } from "../../world/backend.ts";
import type { Carried, Traffic } from "./command-network.ts";
import type { Allowance } from "./allowance.ts";
import { dial } from "./dial.ts";
import { FirstBytesReader } from "./first-bytes.ts";
import type { OwnAddresses } from "./names/internal-addresses.ts";
import type { Bound } from "./bound.ts";
import { HOST_INTERNAL, hostName } from "./names/names.ts";
import { Pump, type PumpEnd } from "./pump.ts";
import type { Reach } from "./reach.ts";
import type { ReadBuffers } from "./read-buffers.ts";
import { judgeTarget, leadTarget, mayLeadTo, type Target } from "./target.ts";
import { UpstreamSocket } from "./upstream-socket.ts";

/** State shared by all connections of a broker. */
export type Outside = {
  readonly own: OwnAddresses;
  readonly buffers: ReadBuffers;
  /** Bounds the number of connections. */
  readonly connections: Bound;
};

/** Bounds for all connections of one world. */
export type WorldShare = {
  /** First bytes awaiting their verdict. */
  readonly heldBytes: Bound;
  /** Names being resolved. */
  readonly names: Bound;
};

export type ConnectionEnd = {
  readonly ended: PumpEnd["ended"] | "failed";
  /** The dialled address; null when nothing was reached. */
  readonly address: string | null;
  readonly reason: string | null;
  /** A sentence, when a rule ended the connection; null when either side did. */
  readonly refusal: string | null;
  /** A protocol whose host names were not compared with the dialled name. */
  readonly unread: "http2" | null;
};

/** A connection out of a world, from capture to end. Owns both sockets. */
export class Connection implements Carried {
  readonly target: Target;
  readonly #world: WorldSocket;
  readonly #outside: Outside;
  readonly #share: WorldShare;
  readonly #stop = new AbortController();
  /** The reach of the last check. */
  #reach: Reach | undefined;
  #address: string | undefined;
  #pump: Pump | undefined;
  #haveSent: () => void = () => {};
  readonly sent: Promise<void>;

  constructor({ socket }: Captured, target: Target, outside: Outside, share: WorldShare) {
    this.target = target;
    this.#world = socket;
    this.#outside = outside;
    this.#share = share;
    this.sent = new Promise((resolve) => {
      this.#haveSent = resolve;
    });
    // Until the pump listens, ignoring: a client may leave while its name is being resolved.
    socket.on("error", () => {});
  }

  get traffic(): Traffic {
    return { egress: this.#pump?.egress ?? 0, ingress: this.#pump?.ingress ?? 0 };
  }

  /** Settles when both sides are closed; never rejects. */
  async run(reach: Reach, allowance: Allowance): Promise<ConnectionEnd> {
    const end = await this.#run(reach, allowance);
    this.#haveSent();
    return end;
  }

  async #run(reach: Reach, allowance: Allowance): Promise<ConnectionEnd> {
    const { target } = this;
    const signal = this.#stop.signal;
    this.#reach = reach;
    try {
      const led = await leadTarget(reach, target, this.#outside.own, signal, this.#share.names);
      if (led.kind === "nowhere") return this.#fail(led.why, led.refused ? led.why : null);
      const make = (): UpstreamSocket => new UpstreamSocket(this.#outside.buffers);
      const upstream = await dial(led.addresses, target.port, { signal, make });
      const address = upstream.remoteAddress ?? null;
      this.#address = upstream.remoteAddress;
      if (!this.#isAllowedBy(this.#reach)) {
        upstream.resetAndDestroy();
        return this.#fail(NO_MORE, null);
      }
      const firstBytes = firstBytesOf(target);
      this.#pump = new Pump({
        world: this.#world,
        upstream,
        allowance,
        firstBytes,
        held: this.#share.heldBytes,
        onSent: () => this.#haveSent(),
      });
      const end = endOf(await this.#pump.ended, address, target);
      return { ...end, unread: firstBytes?.answer.kind === "http2" ? "http2" : null };
    } catch (error) {
      if (!signal.aborted) reach.resolver.forget(target.host);
      return this.#fail(error instanceof Error ? error.message : String(error), null);
    }
  }

  /** Applies changed policies: cuts the connection when its target or resolved address is no longer allowed. */
  recheck(reach: Reach): void {
    this.#reach = reach;
    if (!this.#isAllowedBy(reach)) this.cut(NO_MORE);
  }

  /** Resets both sides, in any state. */
  cut(reason: string): void {
    this.#stop.abort(new Error(reason));
    this.#pump?.cut(reason);
  }

  #isAllowedBy(reach: Reach): boolean {
    if (judgeTarget(reach, this.target).blocked) return false;
    return this.#address === undefined || mayLeadTo(reach, this.target, this.#address, this.#outside.own);
  }

  #fail(reason: string, refusal: string | null): ConnectionEnd {
    this.#world.resetAndDestroy();
    return { ended: "failed", address: null, reason, refusal, unread: null };
  }
}

const NO_MORE = "the policy no longer allows it";

/**
 * Makes the comparison of first bytes. A literal address has no name to compare, and `host.internal` serves any name.
 */
function firstBytesOf({ kind, host }: Target): FirstBytesReader | undefined {
  return kind === "address" || host === HOST_INTERNAL ? undefined : new FirstBytesReader(host, hostName);
}

function endOf(
  { ended, reason, refused }: PumpEnd,
  address: string | null,
  target: Target,
): Omit<ConnectionEnd, "unread"> {
  const refusal = refused === undefined ? null : wordsOf(refused, target);
  return { ended, address, reason: refusal ?? reason ?? null, refusal };
}

function wordsOf(refused: NonNullable<PumpEnd["refused"]>, { host }: Target): string {
  return refused.kind === "disagrees"
    ? `The connection to '${host}' was cut: it asks for '${refused.named}' (${refused.protocol === "tls" ? "TLS server name" : "HTTP Host"})`
    : `The connection to '${host}' was cut: its first bytes cannot be read (${refused.why})`;
}
