import type { Socket } from "node:net";

type Watched = { readonly read: number; readonly act: () => void };

/**
 * Detects answers left unread by the client. A written answer proves nothing: `finish` fires after failed writes too, and written
 * bytes may wait in the client's receive buffer. If the client closes with unread bytes, the kernel reports ECONNRESET to the broker
 * (unix_release_sock in net/unix/af_unix.c); after reading, the connection closes without an error.
 */
export class UnreadAnswers {
  readonly #last = new WeakMap<Socket, Watched>();

  /**
   * Runs `act` at most once, if the client does not read the next answer: the connection breaks before further bytes from the client,
   * or `gone` aborts because the connection closed before the answer was sent.
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
