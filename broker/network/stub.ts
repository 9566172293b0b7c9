import type { Asker, DatagramPort, DnsSockets, StreamListener, WorldSocket } from "../../world/backend.ts";
import { replyTo, type StubAnswers } from "./dns-answer.ts";

export type { StubAnswers } from "./dns-answer.ts";

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
 * The DNS server of one world, on sockets bound inside the world. Asks no other server: an allowed name has its
 * synthetic address, and any other name does not exist.
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
    const { reply, waits } = this.#reply(message, { transport: "udp", port: from.port });
    if (reply === undefined) return;
    if (waits.length === 0) return this.#send(reply, from);
    void Promise.all(waits).then(() => this.#send(reply, from));
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
      return { reply: replyTo(message, this.#answers, { asker, until }), waits };
    } catch (error) {
      this.#answers.onFault(error);
      return { reply: failed(message), waits: [] };
    }
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

/** A reply, and what it waits for. */
export type Replied = { readonly reply: Buffer | undefined; readonly waits: readonly Promise<unknown>[] };

type Reply = (message: Buffer, asker: Asker) => Replied;

/** DNS over TCP (RFC 7766): messages with a two-byte length prefix, any number per connection, answered in order. */
export class DnsStreams {
  readonly #server: StreamListener;
  readonly #open = new Set<WorldSocket>();

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
    let waiting: Buffer = Buffer.alloc(0);
    /** Settles when every earlier reply is written; undefined: nothing waits. */
    let earlier: Promise<unknown> | undefined;
    // Stops reading from a client that does not read its replies; the idle timeout then closes the connection.
    const write = (replies: Buffer): void => {
      if (replies.length > 0 && !socket.destroyed && !socket.write(replies)) socket.pause();
    };
    socket.setTimeout(idleMs, () => socket.destroy());
    socket.on("close", () => this.#open.delete(socket));
    // The client left before its reply, ignoring: nobody waits for an answer.
    socket.on("error", () => socket.destroy());
    socket.on("drain", () => socket.resume());
    socket.on("data", (bytes: Buffer) => {
      const taken = takeMessages(Buffer.concat([waiting, bytes]), (message) => reply(message, asker));
      if (taken === undefined) return void socket.destroy();
      waiting = taken.rest;
      if (earlier === undefined && taken.waits.length === 0) return write(taken.replies);
      const written = Promise.all([earlier, ...taken.waits]).then(() => {
        write(taken.replies);
        if (earlier === written) earlier = undefined;
      });
      earlier = written;
    });
  }
}

/**
 * Replies to all complete messages and returns the remaining bytes. Undefined for an impossible length, or when no
 * reply is due.
 */
function takeMessages(
  bytes: Buffer,
  reply: (message: Buffer) => Replied,
): { replies: Buffer; rest: Buffer; waits: readonly Promise<unknown>[] } | undefined {
  const replies: Buffer[] = [];
  const waits: Promise<unknown>[] = [];
  let at = 0;
  while (at + 2 <= bytes.length) {
    const length = bytes.readUInt16BE(at);
    if (length < MIN_MESSAGE || length > MAX_MESSAGE) return undefined;
    const end = at + 2 + length;
    if (end > bytes.length) break;
    const answer = reply(bytes.subarray(at + 2, end));
    if (answer.reply === undefined) return undefined;
    replies.push(framed(answer.reply));
    waits.push(...answer.waits);
    at = end;
  }
  return { replies: Buffer.concat(replies), rest: bytes.subarray(at), waits };
}

function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
