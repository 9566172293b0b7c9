/** Operator calls on worlds: pre-warming a session's world, and ending worlds. */
import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import type {
  EndedWorld,
  WarmedWorld,
  WorldRestartReply,
  WorldRestartRequest,
  WorldWarmReply,
  WorldWarmRequest,
} from "../../schemas/generated/types.ts";
import { asRequired, givesFreshWorlds, unavailableUnder } from "./borrow-world.ts";
import type { Broker } from "../broker.ts";
import type { EndedWarm } from "../worlds/worlds.ts";
import { followPolicies, type Ground, groundOf } from "../policies/judge.ts";
import { leaseWorld } from "./lease-world.ts";
import type { Effective } from "../model/effective.ts";
import { placeOfWorld } from "../project/request.ts";
import type { Session } from "../model/place.ts";
import type { Lease } from "../worlds/worlds.ts";

/** The default agent of an operator's call. */
const OPERATOR = "human";

const CAUSE = "an operator restarted it";

/** A session, and the policies for its next command. */
export type Spot = {
  readonly session: Session;
  readonly ground: Ground;
  readonly now: () => Effective | undefined;
};

/** Pre-warms the session's world for its next command. */
export async function warmWorld(
  broker: Broker,
  request: WorldWarmRequest,
): Promise<WorldWarmReply | Refusal> {
  const spot = spotOf(broker, request);
  if (isRefusal(spot)) return spot;
  if (givesFreshWorlds(spot.ground.effective)) return cannotWarm(spot);
  const world = await warm(broker, spot);
  return isRefusal(world) ? world : { world };
}

/**
 * Pre-warms the session's world if the session has no world under any policy; returns undefined when a world exists afterwards.
 */
export async function warmIfNone(broker: Broker, spot: Spot): Promise<Refusal | undefined> {
  if (broker.worlds.isWarm(spot.session.id)) return undefined;
  if (givesFreshWorlds(spot.ground.effective)) return cannotWarm(spot);
  const world = await warm(broker, spot);
  return isRefusal(world) ? world : undefined;
}

/** Ends the session's world and warms a new one, or ends every world. */
export async function restartWorld(
  broker: Broker,
  request: WorldRestartRequest,
): Promise<WorldRestartReply | Refusal> {
  if (request.all === true) {
    const ended = await endWorlds(broker, undefined, request.force === true);
    return isRefusal(ended) ? ended : { ended: ended.ended, world: null };
  }
  const spot = spotOf(broker, request);
  if (isRefusal(spot)) return spot;
  const ended = await endWorlds(broker, spot.session.id, request.force === true);
  if (isRefusal(ended)) return ended;
  if (givesFreshWorlds(spot.ground.effective)) return { ended: ended.ended, world: null };
  const world = await warm(broker, spot);
  return isRefusal(world) ? world : { ended: ended.ended.map((one) => withoutOpen(broker, one)), world };
}

export function spotOf(
  broker: Broker,
  request: Pick<WorldWarmRequest, "agent_id" | "cwd" | "profile">,
): Spot | Refusal {
  const agent = request.agent_id ?? OPERATOR;
  const place = placeOfWorld(broker, request.cwd, "person");
  if (isRefusal(place)) return place;
  const ground = groundOf(broker, agent, place, request.profile);
  if (isRefusal(ground)) return ground;
  const now = followPolicies(broker, agent, place, request.profile, ground.effective);
  return { session: broker.sessions.of(agent, place.project), ground, now };
}

async function warm(broker: Broker, spot: Spot): Promise<WarmedWorld | Refusal> {
  const { session, ground } = spot;
  const { effective, site } = ground;
  const begun = performance.now();
  const before = broker.worlds.isWarm(session.id) ? await warmId(broker, session.id) : undefined;
  const lease = await borrow(broker, spot);
  if (isRefusal(lease)) return lease;
  const { world } = lease;
  lease.release(false);
  return {
    world_id: world.id,
    session_id: session.id,
    agent_id: session.agent,
    project: site.project,
    policy_id: effective.id,
    policy_hash: effective.hash,
    was_warm: world.id === before,
    duration_ms: Math.round((performance.now() - begun) * 1000) / 1000,
    isolation: world.isolation,
    mounts: world.mounts.length,
  };
}

async function borrow(broker: Broker, { session, ground, now }: Spot): Promise<Lease | Refusal> {
  const { effective, site } = ground;
  try {
    const spec = broker.warmSpecs.placed(broker.warmSpecs.of(effective.hash, effective.policies, site));
    return asRequired(effective, await leaseWorld(broker, { session, spec, effective, now, fresh: false }));
  } catch (error) {
    return unavailableUnder(effective, error);
  }
}

async function warmId(broker: Broker, session: string): Promise<string | undefined> {
  const all = await broker.worlds.all();
  return all.find((known) => known.session === session && known.world.spec.ownHome === undefined)?.world.id;
}

async function endWorlds(
  broker: Broker,
  session: string | undefined,
  force: boolean,
): Promise<{ readonly ended: readonly EndedWorld[] } | Refusal> {
  const sessions =
    session === undefined ? (await broker.worlds.all()).map((warm) => warm.session) : [session];
  const running = broker.worlds.running(session);
  if (running > 0 && !force) return isBusy(running, session === undefined);
  const ports = new Map(sessions.map((id) => [id, openPorts(broker, id)]));
  const ended = await broker.worlds.restart(session, CAUSE);
  // A session's ports led to its newest world, and `ended` lists the newest first.
  const takePorts = (id: string): ClosedPorts => {
    const closed = ports.get(id) ?? [];
    ports.delete(id);
    return closed;
  };
  return { ended: ended.map((one) => endedWorld(broker, one, takePorts(one.session ?? ""))) };
}

type ClosedPorts = EndedWorld["closed_ports"];

function openPorts(broker: Broker, session: string): ClosedPorts {
  return broker.publisher
    .of(session)
    .filter(({ problem }) => problem === null)
    .map(({ port, hostPort, by }) => ({ port, host_port: hostPort, by }));
}

/** Removes ports already published into the new world by a policy. */
function withoutOpen(broker: Broker, ended: EndedWorld): EndedWorld {
  const open = openPorts(broker, ended.session_id ?? "").map(({ host_port: port }) => port);
  return { ...ended, closed_ports: ended.closed_ports.filter(({ host_port: port }) => !open.includes(port)) };
}

function endedWorld(
  broker: Broker,
  { session, world, commands, processes }: EndedWarm,
  ports: ClosedPorts,
): EndedWorld {
  const owner = session === null ? undefined : broker.sessions.find(session);
  return {
    world_id: world.id,
    session_id: session,
    agent_id: owner?.agent ?? null,
    project: world.spec.project,
    commands,
    processes: [...processes],
    closed_ports: ports,
  };
}

function isBusy(running: number, all: boolean): Refusal {
  const commands = running === 1 ? "1 command runs" : `${running} commands run`;
  return refusal(
    "busy",
    `Cannot restart ${all ? "all worlds" : "the world"}: ${commands} inside`,
    "Wait until they have ended, or send 'force': true (--force) to end them",
    { retry_after_ms: 1000 },
  );
}

function cannotWarm({ ground }: Spot): Refusal {
  const { id } = ground.effective;
  return refusal(
    "invalid_request",
    `Cannot keep a world warm: policy '${id}' gives every command a world of its own`,
    "Set 'world.reuse_session: true' in the policy",
    { policy_id: id },
  );
}
