/** The lines that published ports leave in the trace. They belong to no agent: they name other agents and host programs. */
import type { Session } from "../model/place.ts";
import { eventSpan } from "../spans/event-span.ts";
import { redact } from "../secrets/redact.ts";
import type { SpanRecord } from "../spans/trace.ts";
import type { PublishEvent } from "./publisher.ts";

/** `session` is undefined when nobody knows it any more. */
export function publishSpan(happened: PublishEvent, session: Session | undefined): SpanRecord {
  const { event, port, hostPort, by, message } = happened;
  return eventSpan({
    event_type: "world",
    session_id: happened.session,
    cwd: session?.project ?? null,
    outcome: event === "failed" ? "failed" : "ended",
    published: { event, port, host_port: hostPort, by },
    ...(message === null ? {} : { message: redact(message, "message").text }),
  });
}
