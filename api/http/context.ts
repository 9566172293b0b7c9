import type { Broker } from "../../broker/broker.ts";
import type { Room } from "./bounds.ts";
import type { Caller } from "./caller.ts";
import type { UnreadAnswers } from "./unread-answers.ts";

/** The logger methods used by the API. */
export type Log = {
  readonly info: (facts: object, message: string) => void;
  readonly warn: (facts: object, message: string) => void;
  readonly error: (facts: object, message: string) => void;
};

/** Context of a request, passed to the handler. */
export type Context = {
  readonly broker: Broker;
  readonly caller: Caller;
  readonly log: Log;
  /** Unread answers of the connection's listener. */
  readonly unread: UnreadAnswers;
  /** Of all clients of the listener. */
  readonly bodies: Room;
  /** Of answers that clients of the listener have not read. */
  readonly replies: Room;
};
