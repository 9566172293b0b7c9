import { createHash } from "node:crypto";
import type { EventReply, EventRequest, Span } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";
import { cannotRecord, isRefusal, type Refusal } from "../model/refusal.ts";
import type { AgentSession } from "../project/agent-sessions.ts";
import { NO_PROJECT } from "../project/projects.ts";
import { placeOnHost } from "../project/request.ts";
import { redact, type Redaction } from "../secrets/redact.ts";
import { eventSpan } from "../spans/event-span.ts";

/** Records an event of a coding agent. Decides and charges nothing. */
export function recordEvent(broker: Broker, agent: string, request: EventRequest): EventReply | Refusal {
  const { event, cwd, session_key: key } = request;
  const place = placeOnHost(broker, cwd);
  if (isRefusal(place)) return place;
  const hasProject = place.project !== NO_PROJECT;
  const id = hasProject ? broker.sessions.of(agent, place.project, key).id : null;
  const { told, redacted } = toldBy(request);
  const span = eventSpan({
    event_type: "agent",
    agent_id: agent,
    session_id: id,
    parent_span: parentOf(event, broker.agentSessions.of(agent, key)),
    cwd: place.cwd,
    outcome: "ended",
    agent_event: told,
    redacted: [...redacted],
  });
  try {
    broker.trace.event(span);
  } catch (fault) {
    return cannotRecord("The event is not recorded", fault);
  }
  // The first sign of a session, where its beginning was told to nobody.
  const isFirst = key !== undefined && broker.agentSessions.of(agent, key) === undefined;
  if (hasProject && (event === "session_start" || isFirst)) broker.startFolders.note(place.cwd);
  if (key !== undefined)
    broker.agentSessions.note(agent, key, { event, span: span.span_id, at: span.ts, id });
  return { span_id: span.span_id, session_id: id };
}

function parentOf(event: EventRequest["event"], session: AgentSession | undefined): string | null {
  if (session === undefined || event === "session_start") return null;
  return event === "stop" || event === "tool" ? session.parent : session.start;
}

type AgentEvent = NonNullable<Span["agent_event"]>;

/** A prompt may hold anything: its hash and length are kept, not its text. */
function toldBy({ event, session_key: key, prompt, files, ...words }: EventRequest): {
  readonly told: AgentEvent;
  readonly redacted: readonly Redaction[];
} {
  const redacted: Redaction[] = [];
  const safe = (text: string): string => {
    const cleaned = redact(text, "agent_event");
    redacted.push(...cleaned.redacted);
    return cleaned.text;
  };
  const { reason, tool, tool_use_id: use } = words;
  const told: AgentEvent = {
    event,
    session_key: key ?? null,
    ...(reason === undefined ? {} : { reason: safe(reason) }),
    ...(prompt === undefined
      ? {}
      : {
          prompt: {
            sha256: createHash("sha256").update(prompt).digest("hex"),
            bytes: Buffer.byteLength(prompt),
          },
        }),
    ...(tool === undefined ? {} : { tool: safe(tool) }),
    ...(use === undefined ? {} : { tool_use_id: safe(use) }),
    ...(files === undefined
      ? {}
      : { files: files.map(({ path, access }) => ({ path: safe(path), access })) }),
  };
  return { told, redacted };
}
