import type { Broker } from "../../broker/broker.ts";
import { mayHold } from "../../broker/held/past.ts";
import { eventSpan } from "../../broker/spans/event-span.ts";
import type { Log } from "../http/context.ts";

const HOUR_MS = 3_600_000;
const DEFAULT_MAX_AGE_HOURS = 168;

/**
 * Completes or rolls back each apply or undo interrupted by the death of a broker, and records the result in the trace. Call before
 * any other use of held changes.
 */
export async function recoverChanges(broker: Broker, log: Log): Promise<void> {
  try {
    for (const { span, message } of (await broker.backend.held?.recover(broker.home.overlay)) ?? []) {
      log.warn({ recovered: message }, "Resolved an interrupted apply or undo");
      const { agent_id = null, session_id = null } = broker.trace.find(span) ?? {};
      const whose = { parent_span: span, agent_id, session_id };
      broker.trace.event(eventSpan({ event_type: "world", ...whose, outcome: "ended", message }));
    }
  } catch (error) {
    log.error({ err: error }, "Cannot resolve an interrupted apply or undo; the next start tries again");
  }
}

/**
 * Removes the overlay layers of a dead broker's isolated commands, in the background. Call before the first command: until then,
 * layers without a span belong to no command.
 */
export function dropLeftChanges(broker: Broker, log: Log): void {
  broker.backend
    .dropLeft(broker.home.overlay, (span) =>
      mayHold(broker.trace.find(span), () => broker.trace.childrenOf(span)),
    )
    .then((removed) => {
      if (removed > 0) log.info({ removed }, "Removed the overlay layers of lost commands");
    })
    .catch((error: unknown) =>
      log.error({ err: error }, "Cannot remove the overlay layers of lost commands"),
    );
}

/** Discards expired held changes, now and every hour; returns the timer. A failure is logged and retried at the next sweep. */
export function expireHeldChanges(broker: Broker, log: Log): NodeJS.Timeout {
  const sweep = async (): Promise<void> => {
    const hours = broker.config().held?.max_age_hours ?? DEFAULT_MAX_AGE_HOURS;
    const removed = await broker.backend.expireHeld(broker.home.overlay, hours * HOUR_MS);
    if (removed > 0) log.info({ removed, hours }, "Held changes have expired");
  };
  const sweepOrSay = (): void => {
    sweep().catch((error: unknown) => log.error({ err: error }, "Cannot remove expired held changes"));
  };
  sweepOrSay();
  const timer = setInterval(sweepOrSay, HOUR_MS);
  timer.unref();
  return timer;
}
