import type { Socket } from "node:net";

type Watched = { readonly read: number; readonly act: () => void };

/**
 * Whether an answer came to its client. That it was written does not say so: `finish` comes after a write that failed too, and
 * what the kernel took may wait in the client's buffer. A client that closes with unread bytes in it makes the kernel tell the
 * other side (ECONNRESET; unix_release_sock in net/unix/af_unix.c), and one that has read them ends quietly.
 */
export class UnreadAnswers {
  readonly #last = new WeakMap<Socket, Watched>();

  /**
   * Acts when the answer that is about to be sent was not read, at most once: the connection breaks before anything else came
   * from there. `gone` aborts when it closes before the answer was sent.
   */
  watch(socket: Socket, gone: AbortSignal, act: () => void): void {
    if (gone.aborted) return act();
    gone.addEventListener("abort", act, { once: true });
    if (!this.#last.has(socket)) socket.once("close", (broke) => this.#closed(socket, broke));
    this.#last.set(socket, { read: socket.bytesRead, act });
  }

  #closed(socket: Socket, broke: boolean): void {
    const last = this.#last.get(socket);
    if (broke && last?.read === socket.bytesRead) last.act();
  }
}
