/** What stood in the project when a command had ended: whoever applies its changes later is told what went since. */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { KeyedMutex, World, WorldBackend } from "../../world/backend.ts";
import type { Job } from "../model/job.ts";

/** After the reply, and after what is made ready for the next command: starting a process holds the broker up. */
const LATER_MS = 40;

const PATIENCE_MS = 60_000;

/** Begins it, and returns at once. Without it a later look is the first, which misses what went before that. */
export function lookFirst(
  broker: { readonly backend: Pick<WorldBackend, "held">; readonly heldMutex: KeyedMutex },
  { place: { project, identity } }: Job,
  world: World,
): void {
  const { mountedAt } = world;
  const { access } = world.spec;
  const store = broker.backend.held;
  if (store === null || mountedAt === null || access.kind !== "overlay") return;
  const held = { layers: access.layers, project, identity, mountedAt };
  const look = async (): Promise<void> => {
    await sleep(LATER_MS, undefined, { ref: false });
    // What is applied before is compared with its own look.
    await broker.heldMutex.run(project, async () => {
      if (existsSync(held.layers)) await store.look(held, AbortSignal.timeout(PATIENCE_MS));
    });
  };
  look().catch(() => {
    // It cannot be read or written, ignoring: whoever asks for the changes is told.
  });
}
