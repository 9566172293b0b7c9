import type { SpanConnection } from "../../schemas/generated/types.ts";
import { newId } from "../model/ids.ts";
import { eventSpan } from "../spans/event-span.ts";
import type { SpanRecord } from "../spans/trace.ts";
import type { Traffic } from "./command-network.ts";
import type { Reach } from "./reach.ts";

/** A world's owner and id. */
export type Resident = { readonly agent: string; readonly session: string; readonly world: string };

export type ConnectionFacts = {
  readonly id: string;
  readonly resident: Resident;
  readonly reach: Reach;
  readonly connection: SpanConnection;
  readonly traffic: Traffic;
  readonly durationMs: number;
  /** No list of the policy allows the connection; the policy only observes. */
  readonly wouldDeny: boolean;
  /** The `command_start` line of the connection's command; undefined when the command is unknown. */
  readonly started: SpanRecord | undefined;
};

/** The budget windows that count the connection's bytes. */
export type Counted = Pick<SpanRecord, "budget">;

export function newConnectionId(): string {
  return newId("spn");
}

/** Makes a connection's single line, written at its end. */
export function connectionSpan(facts: ConnectionFacts, counted: Counted): SpanRecord {
  const { id, resident, reach, connection, traffic, started } = facts;
  const { mode } = reach.effective.policies[0];
  return eventSpan({
    event_type: "connection",
    span_id: id,
    parent_span: started?.span_id ?? null,
    session_id: resident.session,
    world_id: resident.world,
    agent_id: resident.agent,
    cwd: started?.cwd ?? null,
    policy_id: reach.effective.id,
    policy_hash: reach.effective.beyond?.policyHash ?? reach.effective.hash,
    policy_commit: reach.effective.commit,
    outcome: connection.ended === "failed" ? "failed" : "ended",
    duration_ms: Math.round(facts.durationMs * 1000) / 1000,
    scopes_used: [`net:${connection.host}:${connection.port}`],
    usage: {
      cpu_ms: null,
      memory_peak_bytes: null,
      egress_bytes: traffic.egress,
      ingress_bytes: traffic.ingress,
      processes: null,
    },
    decision: { verdict: facts.wouldDeny ? "would_deny" : "allow", mode, rule: null },
    connection,
    ...counted,
  });
}
