import type { IncomingMessage, ServerResponse } from "node:http";
import { ClientLeft } from "./body.ts";

/** Makes a signal for a client's departure, aborted if the connection closes before the answer is sent. Used to end the command. */
export function whenClientLeaves(request: IncomingMessage, response: ServerResponse): AbortSignal {
  const leaving = new AbortController();
  // Listen on the socket: a response queued in the HTTP pipeline gets no `close` event.
  const { socket } = request;
  const leave = (): void => leaving.abort(new ClientLeft("The client disconnected before it had its answer"));
  socket.once("close", leave);
  response.once("finish", () => socket.off("close", leave));
  return leaving.signal;
}
