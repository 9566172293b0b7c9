/** A common bound on the requests of one socket's clients: without it, 300 clients that sent 10 MiB each took 3 GB of the broker. */
import { type Refusal, refusal } from "../../broker/model/refusal.ts";

/** Bytes of all requests together, from the first byte until the call is answered. */
export const BODY_ROOM = 128 * 1024 * 1024;

/** A request of so many bytes is never refused: a flood of long ones does not stop the short ones of others. */
const ALWAYS = 64 * 1024;

export class BodyRoom {
  /** Bytes by request, or by connection of a stream. */
  readonly #kept = new Map<object, number>();
  #all = 0;

  /** Notes how many bytes a request has by now. False: there is no room for them, and the request must be dropped. */
  keep(request: object, bytes: number): boolean {
    if (bytes <= ALWAYS) return true;
    const all = this.#all - (this.#kept.get(request) ?? 0) + bytes;
    if (all > BODY_ROOM) return false;
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
