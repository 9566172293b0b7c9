import type { Asker, DatagramPort, DnsSockets, StreamListener, WorldSocket } from "../../world/backend.ts";
import { replyTo, type StubAnswers } from "./dns-answer.ts";

export type { Standing, StubAnswers } from "./dns-answer.ts";

/** Replies not yet taken by the kernel; beyond this bound datagrams go unanswered, as UDP permits. */
const MOST_UNSENT = 256;

/**
 * Turns of the event loop after which `idle` gives up. A turn reads 32 datagrams (libuv), and a socket holds some hundred
 * (net.core.rmem_default).
 */
const MOST_TURNS = 64;

/** Length of a DNS header. */
const HEADER = 12;

/**
 * The DNS server of one world, on sockets bound inside the world. An allowed name that exists on the host has its
 * synthetic address, and any other name does not exist. Only allowed names are asked for on the host.
 */
export class DnsStub {
  readonly #udp: DatagramPort;
  readonly #streams: DnsStreams;
  readonly #answers: StubAnswers;
  #closed = false;
  #questions = 0;

  /** @param sockets bound and listening; the stub owns them from now on. */
  constructor(sockets: DnsSockets, answers: StubAnswers) {
    const onFault = (error: unknown) => answers.onFault(error);
    this.#answers = answers;
    this.#udp = sockets.udp;
    this.#udp.on("error", onFault);
    this.#udp.on("message", (message, from) => this.#onDatagram(message, from));
    this.#streams = new DnsStreams(sockets.tcp, (message, asker) => this.#reply(message, asker), onFault);
  }

  /** Questions so far. */
  get questions(): number {
    return this.#questions;
  }

  /** Resolves once the questions asked before the call have been read. */
  async idle(): Promise<void> {
    for (let turn = 0; turn < MOST_TURNS; turn += 1) {
      const before = this.#questions;
      // The first turn may have polled its sockets already.
      await nextTurn();
      await nextTurn();
      if (this.#questions === before) return;
    }
  }

  /** Closes both sockets and every connection; idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#udp.close();
    this.#streams.close();
  }

  #onDatagram(message: Buffer, from: { readonly port: number; readonly address: string }): void {
    if (this.#closed || this.#udp.getSendQueueCount() > MOST_UNSENT) return;
    const reply = this.#reply(message, { transport: "udp", port: from.port });
    if (reply instanceof Promise) void reply.then((later) => this.#send(later, from));
    else if (reply !== undefined) this.#send(reply, from);
  }

  #send(reply: Buffer, to: { readonly port: number; readonly address: string }): void {
    // The client has left, ignoring: a client still interested asks again.
    if (!this.#closed) this.#udp.send(reply, to.port, to.address, () => {});
  }

  /** Replies even when the rules throw: a client without an answer waits for seconds. */
  #reply(message: Buffer, asker: Asker): Replied {
    this.#questions += 1;
    const waits: Promise<unknown>[] = [];
    const until = (settled: Promise<unknown>): void => void waits.push(settled);
    try {
      const reply = replyTo(message, this.#answers, { asker, until });
      if (reply === undefined) return undefined;
      return reply instanceof Promise || waits.length > 0 ? this.#later(message, reply, waits) : reply;
    } catch (error) {
      return this.#failed(message, error);
    }
  }

  /** `waits` can grow until the reply is here. */
  async #later(
    message: Buffer,
    reply: Buffer | Promise<Buffer>,
    waits: readonly Promise<unknown>[],
  ): Promise<Buffer> {
    try {
      const bytes = await reply;
      await Promise.all(waits);
      return bytes;
    } catch (error) {
      return this.#failed(message, error);
    }
  }

  #failed(message: Buffer, error: unknown): Buffer {
    this.#answers.onFault(error);
    return failed(message);
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** SERVFAIL with the header alone. */
function failed(message: Buffer): Buffer {
  const bytes = Buffer.alloc(HEADER);
  message.copy(bytes, 0, 0, 2);
  bytes.writeUInt16BE(0x8082, 2);
  return bytes;
}

/** Per world; a program needs a single connection. */
const MOST_CONNECTIONS = 64;

/** RFC 7766 section 6.2.3: close idle connections after some seconds. */
const IDLE_MS = 10_000;

/** A query takes at most 275 bytes, plus some hundred for its OPT record and padding (RFC 8467: to 128). */
const MAX_MESSAGE = 4096;

const MIN_MESSAGE = 12;

/** A reply, at once or later; never rejects. Undefined: no reply is due. */
export type Replied = Buffer | Promise<Buffer> | undefined;

type Reply = (message: Buffer, asker: Asker) => Replied;

/**
 * Questions answered per turn of the event loop, of all connections, and of one of them. A client that sends without end fills the
 * kernel's buffers again and again: answered as they come, they kept the event loop for a minute, and the operator waited.
 */
const A_TURN = 32;
const A_CONNECTION = 8;

type Connection = {
  readonly socket: WorldSocket;
  readonly reply: (message: Buffer) => Replied;
  /** Not answered yet. */
  bytes: Buffer;
};

/** DNS over TCP (RFC 7766): messages with a two-byte length prefix, any number per connection, answered in order. */
export class DnsStreams {
  readonly #server: StreamListener;
  readonly #open = new Set<WorldSocket>();
  /** Connections with bytes to answer, in the order of their turns. Nothing more is read from them. */
  readonly #asking = new Set<Connection>();
  #isScheduled = false;

  /**
   * @param server listening; owned by this object.
   * @param reply computes a reply; undefined ends the connection.
   * @param idleMs idle time in both directions before a connection is closed.
   */
  constructor(server: StreamListener, reply: Reply, onFault: (error: unknown) => void, idleMs = IDLE_MS) {
    this.#server = server;
    server.maxConnections = MOST_CONNECTIONS;
    server.on("error", onFault);
    server.on("connection", (socket) => this.#serve(socket, reply, idleMs));
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#open) socket.destroy();
  }

  #serve(socket: WorldSocket, reply: Reply, idleMs: number): void {
    this.#open.add(socket);
    const asker = { transport: "tcp", port: socket.remotePort ?? 0 } as const;
    const connection: Connection = {
      socket,
      reply: (message) => reply(message, asker),
      bytes: Buffer.alloc(0),
    };
    socket.setTimeout(idleMs, () => socket.destroy());
    socket.on("close", () => this.#open.delete(socket));
    // The client left before its reply, ignoring: nobody waits for an answer.
    socket.on("error", () => socket.destroy());
    socket.on("data", (bytes: Buffer) => {
      socket.pause();
      connection.bytes = Buffer.concat([connection.bytes, bytes]);
      this.#ask(connection);
    });
  }

  #ask(connection: Connection): void {
    this.#asking.add(connection);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    this.#isScheduled = false;
    let left = A_TURN;
    for (const connection of this.#asking) {
      if (left <= 0) break;
      this.#asking.delete(connection);
      left -= this.#answer(connection, Math.min(left, A_CONNECTION));
    }
    if (this.#asking.size > 0) this.#schedule();
  };

  /** Answers the first questions of a connection; returns how many. */
  #answer(connection: Connection, most: number): number {
    const { socket, bytes, reply } = connection;
    if (socket.destroyed) return 0;
    const taken = takeMessages(bytes, most, reply);
    if (taken === undefined) {
      socket.destroy();
      return 1;
    }
    connection.bytes = taken.rest;
    const goOn = (): void => {
      if (socket.destroyed) return;
      if (taken.replies.length === most) this.#ask(connection);
      else socket.resume();
    };
    void Promise.all(taken.replies.map(async (reply) => await reply)).then((replies) => {
      if (socket.destroyed) return;
      // A client that does not read its replies is asked for nothing more; the idle timeout then closes the connection.
      if (replies.length === 0 || socket.write(Buffer.concat(replies.map(framed)))) goOn();
      else socket.once("drain", goOn);
    });
    return taken.replies.length;
  }
}

type Taken = { readonly replies: readonly (Buffer | Promise<Buffer>)[]; readonly rest: Buffer };

/**
 * Replies to the first complete messages, `most` of them, and returns the remaining bytes. Undefined for an impossible length, or
 * when no reply is due.
 */
function takeMessages(bytes: Buffer, most: number, reply: (message: Buffer) => Replied): Taken | undefined {
  const replies: (Buffer | Promise<Buffer>)[] = [];
  let at = 0;
  while (at + 2 <= bytes.length && replies.length < most) {
    const length = bytes.readUInt16BE(at);
    if (length < MIN_MESSAGE || length > MAX_MESSAGE) return undefined;
    const end = at + 2 + length;
    if (end > bytes.length) break;
    const answer = reply(bytes.subarray(at + 2, end));
    if (answer === undefined) return undefined;
    replies.push(answer);
    at = end;
  }
  return { replies, rest: bytes.subarray(at) };
}

function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
