import type { Broker } from "../broker.ts";

/**
 * Closes the span of a start whose shim went away before it had the answer: it waited too long, or somebody ended it. Nobody
 * else would: whoever reports the end is started by the shim. A span that is closed already stays as it is.
 */
export function closeUnanswered(broker: Broker, agent: string, span: string): void {
  const run = broker.shims.runs.take(span, agent);
  if (run === undefined) return;
  const { message } = run.started;
  broker.trace.close({
    ...run.started,
    ts: new Date().toISOString(),
    event_type: "command_complete",
    outcome: "cancelled",
    duration_ms: run.duration(),
    message: message === undefined || message === null ? NOT_STARTED : `${message}; ${PERHAPS_STARTED}`,
  });
}

const NOT_STARTED = "The shim went away before it was answered, and without an answer it starts nothing";

/** Whoever bypasses waits for no yes. */
const PERHAPS_STARTED = "the shim went away before it was answered, and may have started it";
