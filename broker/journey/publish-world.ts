/** Operator calls for ports that lead into a world. */
import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import type { WorldPublishReply, WorldPublishRequest } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";
import { type Spot, spotOf, warmIfNone } from "./operate-worlds.ts";
import { isProblem, type Problem } from "../publish/problems.ts";

/** Opens a port into the session's world, making the world if necessary; or closes a port. */
export async function publishWorld(
  broker: Broker,
  request: WorldPublishRequest,
): Promise<WorldPublishReply | Refusal> {
  const { port, host_port: hostPort = port } = request;
  const spot = spotOf(broker, request);
  if (isRefusal(spot)) return spot;
  if (request.close === true) return await close(broker, spot, port, hostPort);
  const cold = await warmIfNone(broker, spot);
  if (cold !== undefined) return cold;
  const opened = await broker.publisher.open(spot.session.id, port, hostPort);
  if (isProblem(opened)) return cannotOpen(opened);
  return await replyOf(broker, spot, opened.wasOpen ? "was_open" : "opened", port, hostPort);
}

async function close(
  broker: Broker,
  spot: Spot,
  port: number,
  hostPort: number,
): Promise<WorldPublishReply | Refusal> {
  const done = broker.publisher.close(spot.session.id, port, hostPort);
  if (done === "unknown") return isNotPublished(spot, port, hostPort);
  if (done === "policy") return isThePolicys(spot, port);
  return await replyOf(broker, spot, done, port, hostPort);
}

async function replyOf(
  broker: Broker,
  { session }: Spot,
  state: WorldPublishReply["state"],
  port: number,
  hostPort: number,
): Promise<WorldPublishReply> {
  // The world could not be made, ignoring: the caller that wanted the world got the error.
  const world = await broker.worlds.current(session.id)?.catch(() => undefined);
  return {
    state,
    port,
    host_port: hostPort,
    world_id: world?.id ?? null,
    session_id: session.id,
    agent_id: session.agent,
    project: session.project,
  };
}

const CODES = {
  published: "busy",
  taken: "busy",
  no_world: "busy",
  refused: "invalid_request",
  no_network: "isolation_unavailable",
} as const;

function cannotOpen({ kind, message, hint }: Problem): Refusal {
  return refusal(CODES[kind], message, hint);
}

function isNotPublished({ session }: Spot, port: number, hostPort: number): Refusal {
  return refusal(
    "not_found",
    `Port ${hostPort} of the host does not lead to port ${port} of the world of agent '${session.agent}' in '${session.project}'`,
    "'substrate world status' lists the published ports and their worlds",
  );
}

function isThePolicys({ ground }: Spot, port: number): Refusal {
  const { id } = ground.effective;
  return refusal(
    "invalid_request",
    `Cannot close port ${port}: policy '${id}' publishes it`,
    "Remove it from 'world.publish' in the policy; the change applies with the next command",
    { policy_id: id },
  );
}
