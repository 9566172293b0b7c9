import type { AgentSession as Shown, SessionsReply, Span } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";
import type { AgentSession, AgentSessionQuery } from "../project/agent-sessions.ts";

/** Lists the sessions that agents named, each with its number of commands, which is counted in the trace. */
export async function agentSessions(broker: Broker, query: AgentSessionQuery): Promise<SessionsReply> {
  const sessions: Shown[] = [];
  for (const session of broker.agentSessions.list(query)) sessions.push(await shown(broker, session));
  return { sessions };
}

async function shown({ trace }: Broker, session: AgentSession): Promise<Shown> {
  const { agent, key, ids, began, prompted, ended } = session;
  let commands = 0;
  let last: Span | undefined;
  for (const id of ids) {
    const found = await trace.commandsOf(id);
    commands += found.count;
    if (last === undefined || (found.last?.ts ?? "") > last.ts) last = found.last ?? last;
  }
  return {
    agent_id: agent,
    session_key: key,
    session_ids: [...ids],
    began_at: began,
    prompted_at: prompted,
    ended_at: ended,
    commands,
    last_command: last === undefined ? null : lastCommand(last),
  };
}

function lastCommand({ span_id, ts, cmd, exit, outcome }: Span): Shown["last_command"] {
  return { span_id, ts, cmd, exit, outcome };
}
