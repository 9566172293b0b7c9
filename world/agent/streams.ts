/** Connections of worlds that wait for the broker to fetch them, each by a token that only that broker knows. */
import { randomBytes } from "node:crypto";
import type { WorldSocket } from "../model/network.ts";
import { joinSockets } from "../model/sockets.ts";

/** A broker fetches a connection at once; a slower one has lost it. */
const PATIENCE_MS = 10_000;

/** Waiting connections: each holds a descriptor. */
const MOST_WAITING = 4096;

type Waiting = { readonly socket: WorldSocket; readonly late: NodeJS.Timeout };

export class Streams {
  readonly #waiting = new Map<string, Waiting>();

  /** Returns the token; undefined when too many wait, and the connection is reset. */
  add(socket: WorldSocket): string | undefined {
    socket.on("error", () => {});
    if (this.#waiting.size >= MOST_WAITING) {
      socket.resetAndDestroy();
      return undefined;
    }
    const token = randomBytes(16).toString("hex");
    const late = setTimeout(() => {
      this.#waiting.delete(token);
      socket.resetAndDestroy();
    }, PATIENCE_MS);
    this.#waiting.set(token, { socket, late });
    return token;
  }

  /** Returns a function that joins the connection to the broker's stream; undefined for an unknown token. */
  take(token: string): ((far: WorldSocket) => void) | undefined {
    const waiting = this.#waiting.get(token);
    if (waiting === undefined) return undefined;
    this.#waiting.delete(token);
    clearTimeout(waiting.late);
    return (far) => joinSockets(waiting.socket, far);
  }

  close(): void {
    for (const { socket, late } of this.#waiting.values()) {
      clearTimeout(late);
      socket.resetAndDestroy();
    }
    this.#waiting.clear();
  }
}
