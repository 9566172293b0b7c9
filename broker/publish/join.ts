/** Two sockets as one connection: what comes out of either goes into the other. */
import type { Socket } from "node:net";
import { hasSaidAll, isReset, reset } from "../network/resets.ts";

/**
 * A FIN passes on as a FIN, each way by itself; an error, a reset, and an end that is none as a reset: nobody takes half
 * of something for the whole. A slow reader slows the other side down. Both must allow half-open connections.
 */
export function join(one: Socket, other: Socket): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.setNoDelay(true);
    // Node destroys the socket itself.
    from.on("error", () => reset(to));
    from.on("close", () => {
      if (!hasSaidAll(from)) reset(to);
    });
    // Before the one by which `pipe` passes the end on.
    from.on("end", () => {
      if (isReset(from)) for (const socket of [from, to]) reset(socket);
    });
    from.pipe(to);
  }
  if (one.destroyed || other.destroyed) for (const socket of [one, other]) reset(socket);
}
