import { setMaxListeners } from "node:events";
import type { Visible, Session } from "../model/place.ts";
import type { HealthReply, PublishedPort } from "../../schemas/generated/types.ts";
import { WorldUnavailable } from "../../world/backend.ts";
import type { Broker } from "../broker.ts";
import { type Refusal, refusal } from "../model/refusal.ts";

/**
 * Probes the host's isolation by making a world, and lists the warm worlds of agents accepted by `visible`, with the processes in
 * each world.
 */
export async function health(
  broker: Broker,
  visible: Visible,
  signal: AbortSignal,
): Promise<HealthReply | Refusal> {
  try {
    const isolation = await broker.backend.probe(signal);
    const overlay = (await broker.backend.tryOverlay?.(signal)) ?? isolation.overlay;
    const worlds = await warmWorlds(broker, visible, signal);
    const { version, backend } = broker;
    return { version, backend: backend.name, isolation: { ...isolation, overlay }, worlds };
  } catch (error) {
    if (error instanceof WorldUnavailable) return refusal("isolation_unavailable", error.message, error.hint);
    throw error;
  }
}

async function warmWorlds(
  broker: Broker,
  visible: Visible,
  signal: AbortSignal,
): Promise<HealthReply["worlds"]> {
  const shown = (await broker.worlds.all()).flatMap(({ session: id, ...warm }) => {
    const session = broker.sessions.find(id);
    return session !== undefined && visible(session.agent) ? [{ session, ...warm }] : [];
  });
  // Every world waits on the signal; Node warns of a leak from the eleventh on.
  setMaxListeners(0, signal);
  return await Promise.all(
    shown.map(async ({ session, world, startedAt, running }) => ({
      world_id: world.id,
      session_id: session.id,
      agent_id: session.agent,
      project: session.project,
      started_at: startedAt,
      running,
      pid: world.pid,
      isolation: world.isolation,
      mounts: [...world.mounts],
      limits: { ...world.limits },
      processes: [...(await world.processes(signal).catch(noneOfLost))],
      published: published(broker, session, visible(null)),
    })),
  );
}

/** A world that was lost meanwhile has no processes, and takes nothing from what is told of the others. */
function noneOfLost(error: unknown): readonly [] {
  if (error instanceof WorldUnavailable) return [];
  throw error;
}

function published(broker: Broker, { id }: Session, isOperator: boolean): PublishedPort[] {
  return broker.publisher.of(id).map(({ port, hostPort, by, connections, problem }) => ({
    port,
    host_port: hostPort,
    by,
    connections,
    problem: problem === null ? null : isOperator ? problem.message : problem.reason,
  }));
}
