/** One direction of a connection: what the world sends, held until its first bytes are judged, then as fast as it may. */
import type { Socket } from "node:net";
import type { Allowance } from "./allowance.ts";
import type { FirstBytes, FirstBytesReader } from "./first-bytes.ts";
import { Gathered } from "./gathered.ts";
import type { Bound } from "./bound.ts";

/** After a single word a client that speaks HTTP goes on at once; another waits for an answer to it. */
const QUIET_MS = 300;

const PASSES: FirstBytes = { kind: "agrees" };
const NOTHING = new Uint8Array(0);

export type Refused = Extract<FirstBytes, { kind: "disagrees" | "malformed" }>;

const TOO_MANY: Refused = {
  kind: "malformed",
  protocol: "http",
  why: "too many connections of its world have begun something and not said whom they mean",
};

export type EgressParts = {
  readonly world: Socket;
  readonly upstream: Socket;
  readonly allowance: Allowance;
  /** Undefined where nothing is compared, as for an address that the policy names. */
  readonly firstBytes: FirstBytesReader | undefined;
  /** What all connections of a world may hold together. */
  readonly held: Bound | undefined;
  readonly onRefused: (refused: Refused) => void;
  /** The allowance gives nothing any more. What it gave before is with the kernel. */
  readonly onSpent: () => void;
  /** The allowance threw; nothing may go out then. */
  readonly onFailed: (error: Error) => void;
};

export class Egress {
  readonly #parts: EgressParts;
  /** Not judged yet; no more than its reader reads. */
  readonly #held = new Gathered();
  /** May go; the world is read no further meanwhile. */
  #queue: Uint8Array[] = [];
  #isJudged: boolean;
  #isSending = false;
  #hasEnded = false;
  #isStopped = false;
  #quiet: NodeJS.Timeout | undefined;
  #sent = 0;
  #awaited: (() => void) | undefined;

  constructor(parts: EgressParts) {
    this.#parts = parts;
    this.#isJudged = parts.firstBytes === undefined;
  }

  /** Bytes written to the outside; when it was reset some of them may not have arrived. */
  get sent(): number {
    return this.#sent;
  }

  start(): void {
    const { world } = this.#parts;
    world.on("data", (bytes) => this.#take(bytes));
    world.on("end", () => this.#end());
    world.resume();
  }

  /** Sends nothing any more. */
  stop(): void {
    this.#isStopped = true;
    this.#release();
    this.#queue = [];
    clearTimeout(this.#quiet);
  }

  #take(bytes: Uint8Array): void {
    if (this.#isStopped) return;
    this.#judge(bytes, this.#isJudged ? PASSES : this.#parts.firstBytes?.push(bytes));
  }

  #end(): void {
    if (this.#isStopped) return;
    this.#hasEnded = true;
    this.#judge(NOTHING, this.#isJudged ? PASSES : this.#parts.firstBytes?.end());
  }

  #judge(bytes: Uint8Array, answer: FirstBytes = PASSES): void {
    clearTimeout(this.#quiet);
    if (answer.kind === "disagrees" || answer.kind === "malformed") return this.#parts.onRefused(answer);
    if (answer.kind !== "undecided") {
      this.#isJudged = this.#parts.firstBytes?.isSettled ?? true;
      return this.#send(bytes);
    }
    if (this.#parts.held?.take(bytes.length) === false) return this.#parts.onRefused(TOO_MANY);
    this.#held.add(bytes);
    // What follows it is still held and judged.
    if (this.#parts.firstBytes?.isHarmless === true)
      this.#quiet = setTimeout(() => this.#send(NOTHING), QUIET_MS);
  }

  #release(): Uint8Array {
    this.#parts.held?.giveBack(this.#held.length);
    return this.#held.take();
  }

  /** The world is paused only when something has to wait: usually all goes out within this call. */
  #send(bytes: Uint8Array): void {
    for (const part of [this.#release(), bytes]) if (part.length > 0) this.#queue.push(part);
    if (this.#isSending) return;
    this.#isSending = true;
    void this.#sendAll();
    if (this.#isSending) this.#parts.world.pause();
  }

  async #sendAll(): Promise<void> {
    try {
      await this.#sendQueue();
    } catch (error) {
      this.#parts.onFailed(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Awaits only where the allowance or the kernel lets something wait. */
  async #sendQueue(): Promise<void> {
    const { allowance, onSpent, upstream, world } = this.#parts;
    for (let rest = this.#queue.shift(); rest !== undefined; rest = this.#queue.shift())
      while (rest.length > 0) {
        const taken = allowance.take(rest.length);
        const granted = typeof taken === "number" ? taken : await taken;
        if (this.#isStopped) return allowance.giveBack(granted);
        if (granted === 0) return onSpent();
        const writing = this.#write(rest.subarray(0, granted));
        if (writing !== undefined) await writing;
        if (this.#isStopped) return;
        rest = rest.subarray(granted);
      }
    this.#isSending = false;
    if (this.#hasEnded) upstream.end();
    else if (world.isPaused()) world.resume();
  }

  /** Settles when the kernel has the bytes, or the connection is gone; undefined when it took them at once. */
  #write(bytes: Uint8Array): Promise<void> | undefined {
    const { upstream } = this.#parts;
    this.#sent += bytes.length;
    upstream.write(bytes, this.#onWritten);
    if (upstream.writableLength === 0) return undefined;
    return new Promise((resolve) => {
      this.#awaited = resolve;
    });
  }

  readonly #onWritten = (): void => {
    if (this.#parts.upstream.writableLength === 0) this.#awaited?.();
  };
}
