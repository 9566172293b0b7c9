import type { Broker } from "../../broker/broker.ts";
import type { Caller } from "./caller.ts";
import type { UnreadAnswers } from "./unread-answers.ts";

/** The part of a logger that the API uses. */
export type Log = {
  readonly info: (facts: object, message: string) => void;
  readonly warn: (facts: object, message: string) => void;
  readonly error: (facts: object, message: string) => void;
};

/** What a handler gets beside its request. */
export type Context = {
  readonly broker: Broker;
  readonly caller: Caller;
  readonly log: Log;
  /** Of the listener that the call came through. */
  readonly unread: UnreadAnswers;
};
