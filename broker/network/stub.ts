import type { RemoteInfo, Socket as DatagramSocket } from "node:dgram";
import type { Server } from "node:net";
import { replyTo, type StubAnswers } from "./dns-answer.ts";
import { DnsStreams } from "./dns-streams.ts";

export type { StubAnswers } from "./dns-answer.ts";

/** Replies that the kernel has not taken yet; beyond them a datagram goes unanswered, as any may. */
const MOST_UNSENT = 256;

/** ID of a message, and what a header without a body needs: see `failed`. */
const HEADER = 12;

/**
 * The DNS server of one world, on sockets that were bound inside it. It asks nobody: a name is allowed and has the address
 * that stands for it, or does not exist.
 */
export class DnsStub {
  readonly #udp: DatagramSocket;
  readonly #streams: DnsStreams;
  readonly #answers: StubAnswers;
  #closed = false;

  /** @param sockets bound and listening, and the stub's own from now on. */
  constructor(sockets: { readonly udp: DatagramSocket; readonly tcp: Server }, answers: StubAnswers) {
    const onFault = (error: unknown) => answers.onFault(error);
    this.#answers = answers;
    this.#udp = sockets.udp;
    this.#udp.on("error", onFault);
    this.#udp.on("message", (message, from) => this.#onDatagram(message, from));
    this.#streams = new DnsStreams(sockets.tcp, (message) => this.#reply(message), onFault);
  }

  /** Closes both sockets and every connection; a second time does nothing. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#udp.close();
    this.#streams.close();
  }

  #onDatagram(message: Buffer, from: RemoteInfo): void {
    if (this.#closed || this.#udp.getSendQueueCount() > MOST_UNSENT) return;
    const reply = this.#reply(message);
    // A client that is gone, ignoring: who still wants to know asks again.
    if (reply !== undefined) this.#udp.send(reply, from.port, from.address, () => {});
  }

  /** Whatever the rules do, a question gets an answer at once: a client that hears nothing waits for seconds. */
  #reply(message: Buffer): Buffer | undefined {
    try {
      return replyTo(message, this.#answers);
    } catch (error) {
      this.#answers.onFault(error);
      return failed(message);
    }
  }
}

/** SERVFAIL with the header alone. */
function failed(message: Buffer): Buffer {
  const bytes = Buffer.alloc(HEADER);
  message.copy(bytes, 0, 0, 2);
  bytes.writeUInt16BE(0x8082, 2);
  return bytes;
}
