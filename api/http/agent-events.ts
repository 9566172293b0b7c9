import type { Request } from "express";
import { recordEvent } from "../../broker/journey/agent-event.ts";
import { agentSessions } from "../../broker/journey/agent-sessions.ts";
import type { Refusal } from "../../broker/model/refusal.ts";
import type { EventReply, EventRequest, SessionsReply } from "../../schemas/generated/types.ts";
import type { Call } from "./call.ts";
import { maySee } from "./caller.ts";
import { limitOf, strangeIn } from "./paging.ts";

/** `POST /v1/events`: an event of a coding agent, which is recorded. */
export function handleEvent({ broker, body }: Call<EventRequest>): EventReply | Refusal {
  return recordEvent(broker, body.agent_id, body);
}

const KNOWN = ["agent_id", "session_key", "limit"];
const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;

/** `GET /v1/sessions?agent_id=&session_key=&limit=`: sessions that agents named, the last active one first. */
export function handleSessions({
  broker,
  caller,
  request: { query },
}: Call<undefined, Request>): Refusal | Promise<SessionsReply> {
  const strange = strangeIn(query, KNOWN);
  if (strange !== undefined) return strange;
  const limit = limitOf(query, DEFAULT_LIMIT, MAX_LIMIT);
  if (typeof limit !== "number") return limit;
  const text = (name: string): string | undefined => query[name] as string | undefined;
  const sees = (agent: string): boolean => maySee(caller, agent);
  return agentSessions(broker, { agent: text("agent_id"), key: text("session_key"), limit, sees });
}
