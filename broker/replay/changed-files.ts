/**
 * Files of a project that were changed since a moment, told by their ctime, which nobody can set back. Looked at while the
 * replayed command runs, so that it takes next to no time of its own; what it did not come to is said.
 */
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import { StateHash } from "../project-files/state-hash.ts";
import { walk } from "../project-files/walk.ts";

/** Between two turns while the world is made and runs, in milliseconds. */
const PAUSE_MS = 2;

const MAX_ENTRIES = 200_000;

export type ChangedFiles = {
  /** Relative to the project, a folder with a `/` behind it: something in it came, went or was renamed. */
  readonly paths: readonly string[];
  readonly looked: number;
  /** What is there and could not be looked at. */
  readonly unread: number;
  /** Whether all else was looked at. */
  readonly complete: boolean;
  /** What the span of a command that began now would have as `dirty_hash`. */
  readonly state: string | null;
};

/** How much longer somebody waits. */
export class Patience {
  #deadline = Number.POSITIVE_INFINITY;

  /** From now on, so many milliseconds and no more. */
  for(milliseconds: number): void {
    this.#deadline = performance.now() + milliseconds;
  }

  get isBounded(): boolean {
    return this.#deadline !== Number.POSITIVE_INFINITY;
  }

  get isOver(): boolean {
    return performance.now() > this.#deadline;
  }
}

export type Asked = {
  readonly project: string;
  /** From which moment on (ms) a change of that path counts. */
  readonly since: (path: string) => number;
  /** Whether whoever asks may know of a path. */
  readonly mayTell: (path: string) => boolean;
};

export async function changedFiles(
  { project, since, mayTell }: Asked,
  patience: Patience,
): Promise<ChangedFiles> {
  const paths: string[] = [];
  const state = new StateHash();
  let looked = 0;
  const { stopped, unread } = await walk(
    project,
    (seen) => {
      looked += 1;
      state.add(seen);
      if (seen.stat.ctimeMs <= since(seen.path) || !mayTell(seen.path)) return;
      paths.push(seen.stat.isDirectory() ? `${seen.path === "" ? "." : seen.path}/` : seen.path);
    },
    async () => {
      await (patience.isBounded ? nextTurn() : sleep(PAUSE_MS));
      return !patience.isOver && looked < MAX_ENTRIES;
    },
  );
  const whole = !stopped && unread === 0;
  return { paths: paths.sort(), looked, unread, complete: !stopped, state: whole ? state.value() : null };
}
