import type { Broker } from "../broker.ts";
import type { Effective } from "../model/effective.ts";
import { isLabel } from "../policies/assignment.ts";
import { followPolicy } from "../publish/publisher.ts";
import type { Session } from "../model/place.ts";
import type { SpecOfFiles } from "../worlds/world-spec.ts";
import type { Lease } from "../worlds/worlds.ts";

/** A request for a world. */
export type WorldOrder = {
  readonly session: Session;
  readonly spec: SpecOfFiles;
  readonly effective: Effective;
  /** Reads the current policies at each call; undefined while no policy loads. */
  readonly now: () => Effective | undefined;
  /** Whether the world serves a single command. */
  readonly fresh: boolean;
};

/** In no agent's name. */
const LABELS = ":labels";

/** Leases a world, serves its network by the current rules, and publishes its ports. Throws `WorldUnavailable`. */
export async function leaseWorld(broker: Broker, order: WorldOrder): Promise<Lease> {
  const { session, spec, effective, now, fresh } = order;
  const { agent, project } = session;
  const reach = await broker.gateway.reach(effective, project);
  const settings = await broker.npmRetries.settingsFor(reach.enforced);
  const wanted = { spec, network: reach.captured, under: underOf(effective), settings, hash: effective.hash };
  const lease = fresh
    ? await broker.worlds.leaseFresh(wanted)
    : await broker.worlds.lease(session.id, wanted, () => (isLabel(broker.config(), agent) ? LABELS : agent));
  try {
    await broker.gateway.serve(lease.world, { agent, session: session.id, project, effective: now }, reach);
    if (!fresh) await followPolicy(broker.publisher, session, lease.world, effective);
    return lease;
  } catch (error) {
    lease.release(false);
    throw error;
  }
}

/** The policies' names. Processes left running under one set of names are not handed over to another, even with equal rules. */
function underOf({ policies }: Effective): string {
  return policies.map(({ id }) => id).join(" ");
}
