/**
 * The state of each project's files as it was last looked at: what a command found that began then. Looked at when a command has
 * ended and for a fiftieth of the time at most, so no command waits for it and it may be unknown: then it is null.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { StateHash } from "./state-hash.ts";
import { walk } from "./walk.ts";

/** After a command's end, since others often follow; between two turns; how long a state is believed. In milliseconds. */
const DELAY_MS = 100;
const PAUSE_MS = 2;
const BELIEVED_MS = 30_000;

/** The pause after a look, in times of what it took; after one of too many files, in milliseconds. */
const REST = 50;
const LARGE_REST_MS = 600_000;

const MAX_KNOWN = 256;

type State = {
  hash: string | null;
  at: number;
  /** Commands that run there, and how often one began: a look that one came into is worth nothing. */
  running: number;
  begun: number;
  notBefore: number;
  timer: NodeJS.Timeout | undefined;
};

export class DirtyFiles {
  readonly #states = new Map<string, State>();

  /** `sha256:…` of the files as a command that begins now finds them; null when that is not known. */
  of(project: string): string | null {
    const state = this.#states.get(project);
    if (state === undefined || state.running > 0 || performance.now() - state.at > BELIEVED_MS) return null;
    return state.hash;
  }

  /** A command that can write to the project begins. */
  began(project: string): void {
    const state = this.#state(project);
    state.running += 1;
    state.begun += 1;
    state.hash = null;
  }

  /** It has ended. */
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
      // Files that were not looked at may change unseen. Until another command ends nothing is tried again.
      state.hash = unread === 0 ? found.value() : null;
      state.at = now;
    } else if (state.running === 0) this.#again(project, state);
  }

  /** A command came into the look and has ended again. */
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
