/**
 * The last scanned state of each project's files, as found by a command starting at that time. A project is scanned after a
 * command's end, at most a fiftieth of the time, so no command waits for a scan; the state may be unknown (null).
 */
import { setTimeout as sleep } from "node:timers/promises";
import { StateHash } from "./state-hash.ts";
import { walk } from "./walk.ts";

/** In milliseconds: delay after a command's end, since others often follow; pause between turns; how long a state stays valid. */
const DELAY_MS = 100;
const PAUSE_MS = 2;
const BELIEVED_MS = 30_000;

/** Pause after a scan as a multiple of its duration; after a scan of too many files, in milliseconds. */
const REST = 50;
const LARGE_REST_MS = 600_000;

const MAX_KNOWN = 256;

type State = {
  hash: string | null;
  at: number;
  /** Running commands, and the number of started ones: a scan is discarded if a command started meanwhile. */
  running: number;
  begun: number;
  notBefore: number;
  timer: NodeJS.Timeout | undefined;
};

export class DirtyFiles {
  readonly #states = new Map<string, State>();

  /** Returns `sha256:…` of the files as a command starting now finds them; null when unknown. */
  of(project: string): string | null {
    const state = this.#states.get(project);
    if (state === undefined || state.running > 0 || performance.now() - state.at > BELIEVED_MS) return null;
    return state.hash;
  }

  /** Notes the start of a command with write access to the project. */
  began(project: string): void {
    const state = this.#state(project);
    state.running += 1;
    state.begun += 1;
    state.hash = null;
  }

  /** Notes the end of such a command. */
  ended(project: string): void {
    const state = this.#state(project);
    state.running = Math.max(0, state.running - 1);
    if (state.timer !== undefined || state.running > 0) return;
    const wait = Math.max(DELAY_MS, state.notBefore - performance.now());
    state.timer = setTimeout(() => void this.#look(project, state), wait);
    state.timer.unref();
  }

  async #look(project: string, state: State): Promise<void> {
    state.timer = undefined;
    const { begun } = state;
    const isUndisturbed = (): boolean => state.begun === begun && state.running === 0;
    const [found, started] = [new StateHash(), performance.now()];
    let turns = 1;
    const { stopped, unread } = await walk(
      project,
      (seen) => found.add(seen),
      async () => {
        turns += 1;
        await sleep(PAUSE_MS, undefined, { ref: false });
        return isUndisturbed() && !found.tooMany;
      },
    );
    const now = performance.now();
    const cost = Math.max(1, now - started - turns * PAUSE_MS);
    state.notBefore = now + (found.tooMany ? LARGE_REST_MS : cost * REST);
    if (!stopped && isUndisturbed()) {
      // Unvisited files may change unnoticed. The next scan waits for the end of another command.
      state.hash = unread === 0 ? found.value() : null;
      state.at = now;
    } else if (state.running === 0) this.#again(project, state);
  }

  /** Schedules another scan after a command that started and ended during the last. */
  #again(project: string, state: State): void {
    if (state.timer !== undefined) return;
    const wait = Math.max(DELAY_MS, state.notBefore - performance.now());
    state.timer = setTimeout(() => void this.#look(project, state), wait);
    state.timer.unref();
  }

  #state(project: string): State {
    const known = this.#states.get(project);
    if (known !== undefined) return known;
    if (this.#states.size >= MAX_KNOWN) this.#forgetOne();
    const made = { hash: null, at: 0, running: 0, begun: 0, notBefore: 0, timer: undefined };
    this.#states.set(project, made);
    return made;
  }

  #forgetOne(): void {
    for (const [project, { running, timer }] of this.#states) {
      if (running > 0) continue;
      clearTimeout(timer);
      this.#states.delete(project);
      return;
    }
  }
}
