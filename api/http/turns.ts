/**
 * Shares the event loop among the requests of one socket's clients. Node reads 64 KiB at once: some 1,400 short requests of a client
 * that waits for no answer. All of them began at once, and nobody else was served for minutes.
 */
import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { type Refusal, refusal } from "../../broker/model/refusal.ts";

/** Requests of one connection that have no answer yet; clients of HTTP/1.1 send one, or a few in advance. */
const MOST_UNANSWERED = 16;

/** Requests that wait for their turn, of each {@link Kind}. */
export const MOST_WAITING = 1024;

/** Calls begun per turn of the event loop: a list of spans takes 14 ms, a command a fraction of one. */
const A_TURN = { direct: 8, other: 1 } as const;

type Kind = keyof typeof A_TURN;

type Queue = { begun: number; readonly waiting: (() => void)[] };

export class Turns {
  /** Commands do not wait behind lists. */
  readonly #queues: Readonly<Record<Kind, Queue>> = {
    direct: { begun: 0, waiting: [] },
    other: { begun: 0, waiting: [] },
  };
  #isScheduled = false;

  /** Begins a call in this turn of the event loop, or in a later one. False: too many wait, and it must be refused. */
  take(kind: Kind, begin: () => void): boolean {
    const queue = this.#queues[kind];
    if (queue.waiting.length >= MOST_WAITING) return false;
    if (queue.waiting.length > 0 || queue.begun >= A_TURN[kind]) queue.waiting.push(begin);
    else {
      queue.begun += 1;
      begin();
    }
    this.#schedule();
    return true;
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    this.#isScheduled = false;
    for (const kind of ["direct", "other"] as const) {
      const queue = this.#queues[kind];
      const now = queue.waiting.splice(0, A_TURN[kind]);
      queue.begun = now.length;
      for (const begin of now) begin();
      if (queue.begun > 0) this.#schedule();
    }
  };
}

export function tooManyWaiting(): Refusal {
  return refusal(
    "busy",
    `${MOST_WAITING} calls of this socket's clients wait for their turn`,
    "Send it again when others have been answered",
    { retry_after_ms: 1000 },
  );
}

/** Counts the requests of each connection that have no answer yet. */
export class Unanswered {
  readonly #counts = new WeakMap<Socket, number>();

  /** False: the connection has sent too many in advance, and must be closed. */
  add(socket: Socket, response: ServerResponse): boolean {
    const count = (this.#counts.get(socket) ?? 0) + 1;
    if (count > MOST_UNANSWERED) return false;
    this.#counts.set(socket, count);
    response.once("close", () => this.#counts.set(socket, (this.#counts.get(socket) ?? 1) - 1));
    return true;
  }
}
