/**
 * Sends a world's bytes to the outside: held until the first bytes are judged, then as fast as the allowance permits.
 */
import type { WorldSocket } from "../../world/backend.ts";
import type { Allowance } from "./allowance.ts";
import type { FirstBytes, FirstBytesReader } from "./first-bytes.ts";
import { Gathered } from "./gathered.ts";
import type { Bound } from "./bound.ts";

/** After a single word an HTTP client goes on at once; another client waits for an answer. */
const QUIET_MS = 300;

const PASSES: FirstBytes = { kind: "agrees" };
const NOTHING = new Uint8Array(0);

export type Refused = Extract<FirstBytes, { kind: "disagrees" | "malformed" }>;

const TOO_MANY: Refused = {
  kind: "malformed",
  protocol: "http",
  why: "its world has too many connections that have not yet named their host",
};

export type EgressParts = {
  readonly world: WorldSocket;
  readonly upstream: WorldSocket;
  readonly allowance: Allowance;
  /** Undefined where nothing is compared, as for a literal address allowed by the policy. */
  readonly firstBytes: FirstBytesReader | undefined;
  /** Bounds the bytes held by all connections of the world. */
  readonly held: Bound | undefined;
  readonly onRefused: (refused: Refused) => void;
  /** Called when the world has ended its half and the kernel has all its bytes. */
  readonly onSent: () => void;
  /** Called when the allowance is used up. The kernel already has all bytes granted before. */
  readonly onSpent: () => void;
  /** Called when the allowance threw; no more bytes may leave. */
  readonly onFailed: (error: Error) => void;
};

export class Egress {
  readonly #parts: EgressParts;
  /** Bytes awaiting the verdict; bounded by the reader. */
  readonly #held = new Gathered();
  /** Released bytes; the world is paused meanwhile. */
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

  /** Bytes written to the outside; after a reset, some may not have arrived. */
  get sent(): number {
    return this.#sent;
  }

  start(): void {
    const { world } = this.#parts;
    world.on("data", (bytes: Uint8Array) => this.#take(bytes));
    world.on("end", () => this.#end());
    world.resume();
  }

  /** Stops sending for good. */
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
    // Later bytes are still held and judged.
    if (this.#parts.firstBytes?.isHarmless === true)
      this.#quiet = setTimeout(() => this.#send(NOTHING), QUIET_MS);
  }

  #release(): Uint8Array {
    this.#parts.held?.giveBack(this.#held.length);
    return this.#held.take();
  }

  /**
   * Sends the held bytes and `bytes`. Pauses the world only when a write must wait: usually all bytes leave within this
   * call.
   */
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

  /** Awaits only when the allowance or the kernel makes a write wait. */
  async #sendQueue(): Promise<void> {
    const { allowance, onSent, onSpent, upstream, world } = this.#parts;
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
    if (this.#hasEnded) {
      upstream.end();
      onSent();
    } else if (world.isPaused()) world.resume();
  }

  /**
   * Settles when the kernel has the bytes or the connection is gone; undefined when the kernel took all bytes at once.
   */
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
