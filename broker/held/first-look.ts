/** Records the project's state right after a command, so that a later apply can report files removed since. */
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { timeLimit, type World, type WorldBackend } from "../../world/backend.ts";
import type { Job } from "../model/job.ts";

/** Delay in milliseconds, past the reply and the preparations for the next command: starting a process blocks the broker. */
const LATER_MS = 40;

/** With the wait for other scans of the project. */
const PATIENCE_MS = 5000;

/** Schedules the recording and returns at once. Without it, a later recording is the first and misses earlier removals. */
export function lookFirst(
  broker: { readonly backend: Pick<WorldBackend, "held"> },
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
    // Not under the project's lock, where a person's apply would wait behind the looks of many commands. An apply that was earlier has
    // recorded the project's state already; what another's apply changes meanwhile is later than this command's mount.
    if (existsSync(held.layers)) await store.look(held, timeLimit(PATIENCE_MS));
  };
  look().catch(() => {
    // The project cannot be read or the state not written, ignoring: a later call for the changes gets the error.
  });
}
