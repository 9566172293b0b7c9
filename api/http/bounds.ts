/**
 * Bounds on what one socket's clients can take of the broker: connections, room for their requests and answers, turns of the event loop.
 * Without them, 300 clients that sent 10 MiB each took 3 GB of the broker, and 8 that read no answer took all there is.
 */
import type { ServerResponse } from "node:http";
import type { Server, Socket } from "node:net";
import { descriptorLimit } from "../../broker/model/descriptors.ts";
import { type Refusal, refusal } from "../../broker/model/refusal.ts";

/** Bytes of all requests together, from the first byte until the call is answered. */
export const BODY_ROOM = 128 * 1024 * 1024;

/** Bytes of all answers together, until the kernel has taken them. */
export const REPLY_ROOM = 64 * 1024 * 1024;

/** A request of so many bytes is never refused: a flood of long ones does not stop the short ones of others. */
const ALWAYS = 64 * 1024;

/** The same of an answer, of which one connection may have several. */
export const SHORT_REPLY = 4 * 1024;

/** Bytes that all clients share. */
export class Room {
  readonly #most: number;
  readonly #always: number;
  /** Bytes by request, by connection of a stream, or by answer. */
  readonly #kept = new Map<object, number>();
  #all = 0;

  /**
   * @param most bytes of all together.
   * @param always bytes for which there is always room.
   */
  constructor(most: number = BODY_ROOM, always: number = ALWAYS) {
    this.#most = most;
    this.#always = always;
  }

  /** Notes how many bytes a request has by now. False: there is no room for them, and the request must be dropped. */
  keep(request: object, bytes: number): boolean {
    if (bytes <= this.#always) return true;
    const all = this.#all - (this.#kept.get(request) ?? 0) + bytes;
    if (all > this.#most) return false;
    this.#kept.set(request, bytes);
    this.#all = all;
    return true;
  }

  /** May be called again, and for a request that kept nothing. */
  release(request: object): void {
    this.#all -= this.#kept.get(request) ?? 0;
    this.#kept.delete(request);
  }
}

export function noRoom(): Refusal {
  return refusal(
    "busy",
    `The requests that this socket's clients are sending fill ${BODY_ROOM / 1024 / 1024} MiB`,
    "Send it again when others have been answered; write large data to a file in the project and name the file",
    { retry_after_ms: 1000 },
  );
}

export function unreadFill(): Refusal {
  return refusal(
    "busy",
    `The answers that this socket's clients have not read fill ${REPLY_ROOM / 1024 / 1024} MiB`,
    "Read the answers, then send it again",
    { retry_after_ms: 1000 },
  );
}

/** Requests of one connection that have no answer yet; clients of HTTP/1.1 send one, or a few in advance. */
const MOST_UNANSWERED = 16;

/** Most requests of each {@link Kind} in the queue for a turn. */
export const MOST_WAITING = 1024;

/** Calls begun per turn of the event loop: a list of spans takes 14 ms, a command a fraction of one. */
const A_TURN = { direct: 8, other: 1 } as const;

type Kind = keyof typeof A_TURN;

type Queue = { begun: number; readonly waiting: (() => void)[] };

/**
 * Shares the event loop among the requests. Node reads 64 KiB at once: some 1,400 short requests of a client that waits for no
 * answer. All of them began at once, and nobody else was served for minutes.
 */
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

/** Parts of the broker's descriptors that the connections of one agents' socket take at most, and those of all together. */
const OF_ONE = 1 / 8;
const OF_ALL = 1 / 4;

/**
 * Bounds the connections to agents' sockets. With all descriptors taken the broker could open no file: it recorded nothing, and
 * the operator could not be answered.
 */
export class ConnectionShares {
  readonly #one: number;
  readonly #all: number;
  readonly #refuse: (socket: Socket) => void;
  #open = 0;

  /** `refuse` closes a connection at once. */
  constructor(refuse: (socket: Socket) => void, descriptors = descriptorLimit()) {
    this.#one = Math.floor(descriptors * OF_ONE);
    this.#all = Math.floor(descriptors * OF_ALL);
    this.#refuse = refuse;
  }

  bound<Bounded extends Server>(server: Bounded): Bounded {
    let here = 0;
    server.on("connection", (socket: Socket) => {
      if (here >= this.#one || this.#open >= this.#all) return this.#refuse(socket);
      here += 1;
      this.#open += 1;
      socket.once("close", () => {
        here -= 1;
        this.#open -= 1;
      });
    });
    return server;
  }
}
