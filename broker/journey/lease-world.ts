import type { Broker } from "../broker.ts";
import type { Effective } from "../model/effective.ts";
import { followPolicy } from "../publish/publisher.ts";
import type { Session } from "../model/place.ts";
import type { SpecOfFiles } from "../worlds/world-spec.ts";
import type { Lease } from "../worlds/worlds.ts";

/** A world that is wanted. */
export type WorldOrder = {
  readonly session: Session;
  readonly spec: SpecOfFiles;
  readonly effective: Effective;
  /** The policies as they are whenever it is asked; undefined while none loads. */
  readonly now: () => Effective | undefined;
  /** For one command alone. */
  readonly fresh: boolean;
};

/** Lends a world whose network is served by the rules that hold now, and whose ports are published. Throws `WorldUnavailable`. */
export async function leaseWorld(broker: Broker, order: WorldOrder): Promise<Lease> {
  const { session, spec, effective, now, fresh } = order;
  const { agent, project } = session;
  const reach = await broker.gateway.reach(effective, project);
  const settings = await broker.npmRetries.settingsFor(reach.enforced);
  const wanted = { spec, network: reach.captured, under: underOf(effective), settings, hash: effective.hash };
  const lease = fresh
    ? await broker.worlds.leaseFresh(wanted)
    : await broker.worlds.lease(session.id, wanted);
  try {
    await broker.gateway.serve(lease.world, { agent, session: session.id, project, effective: now }, reach);
    if (!fresh) await followPolicy(broker.publisher, session, lease.world, effective);
    return lease;
  } catch (error) {
    lease.release(false);
    throw error;
  }
}

/** The policies by name: what a command of one has left running is not handed over to another, whatever they say. */
function underOf({ policies }: Effective): string {
  return policies.map(({ id }) => id).join(" ");
}
