/**
 * A common bound on the requests of one socket's clients, and one on their answers: without it, 300 clients that sent 10 MiB each
 * took 3 GB of the broker, and 8 that read no answer took all there is.
 */
import { type Refusal, refusal } from "../../broker/model/refusal.ts";

/** Bytes of all requests together, from the first byte until the call is answered. */
export const BODY_ROOM = 128 * 1024 * 1024;

/** Bytes of all answers together, until the kernel has taken them. */
export const REPLY_ROOM = 64 * 1024 * 1024;

/** A request of so many bytes is never refused: a flood of long ones does not stop the short ones of others. */
const ALWAYS = 64 * 1024;

/** The same of an answer, of which one connection may have several. */
export const SHORT_REPLY = 4 * 1024;

export class BodyRoom {
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
