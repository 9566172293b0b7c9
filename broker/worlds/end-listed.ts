import type { World, WorldProcess } from "../../world/backend.ts";

/** A world that was ended for an operator; `session` is null for that of one command alone. */
export type EndedWarm = {
  readonly session: string | null;
  readonly world: World;
  readonly commands: number;
  readonly processes: readonly WorldProcess[];
};

const LIST_PATIENCE_MS = 5000;

/** A world that does not answer is ended all the same. */
export async function endListed(
  session: string | null,
  world: World,
  commands: number,
  cause: string,
): Promise<EndedWarm> {
  const processes = await world.processes(AbortSignal.timeout(LIST_PATIENCE_MS)).catch(() => []);
  await world.end(cause);
  return { session, world, commands, processes };
}
