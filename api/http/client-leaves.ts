import type { IncomingMessage, ServerResponse } from "node:http";

/** Aborts when the connection closes before the answer was sent: a client that goes away ends its command. */
export function whenClientLeaves(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const leaving = new AbortController();
  // The connection's end and not the response's: one that waits behind another in the pipeline never hears of it.
  const { socket } = request;
  const leave = (): void => leaving.abort(new Error("The client went away"));
  socket.once("close", leave);
  response.once("finish", () => socket.off("close", leave));
  return leaving.signal;
}
