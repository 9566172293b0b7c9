import { setMaxListeners } from "node:events";
import type { Visible, Session } from "../model/place.ts";
import type { HealthReply, PublishedPort } from "../../schemas/generated/types.ts";
import { timeLimit } from "../../world/backend.ts";
import type { Broker } from "../broker.ts";
import type { Refusal } from "../model/refusal.ts";
import { unavailable } from "../model/unavailable.ts";

/** A container runtime may take seconds for its first container. */
const AHEAD_MS = 30_000;

/**
 * Probes the host's isolation by making a world, and lists the warm worlds of agents accepted by `visible`, with the processes in
 * each world.
 */
export async function health(
  broker: Broker,
  visible: Visible,
  patienceMs: number,
): Promise<HealthReply | Refusal> {
  const signal = timeLimit(patienceMs);
  try {
    const isolation = await broker.backend.probe(signal);
    const overlay = (await broker.backend.tryOverlay?.(signal)) ?? isolation.overlay;
    const worlds = await warmWorlds(broker, visible, signal);
    const { version, backend } = broker;
    return { version, backend: backend.name, isolation: { ...isolation, overlay }, worlds };
  } catch (error) {
    const away = unavailable(error);
    if (away === undefined) throw error;
    return away;
  }
}

/** Tries the host's isolation out before the first command, which needs it. Rejects with the reason why no world can be made. */
export async function tryAhead({ backend }: Broker): Promise<void> {
  await backend.probe(timeLimit(AHEAD_MS));
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
  if (unavailable(error) === undefined) throw error;
  return [];
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
