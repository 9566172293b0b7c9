import type { Broker } from "../../broker/broker.ts";
import type { Caller } from "./caller.ts";

/** The part of a logger that the API uses. */
export type Log = {
  readonly info: (facts: object, message: string) => void;
  readonly warn: (facts: object, message: string) => void;
  readonly error: (facts: object, message: string) => void;
};

/** What a handler gets: the broker and who is calling. */
export type Context = { readonly broker: Broker; readonly caller: Caller; readonly log: Log };
