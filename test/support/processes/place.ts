/** The machine that runs the processes of worlds: the test's own, or a virtual machine. */
import { parentOf, processesWith } from "./processes.ts";

export type Place = {
  /** The pids of processes whose command line holds a text. */
  readonly processesWith: (marker: string) => Promise<readonly number[]>;
  /** Kills PID 1 of the world in which a command's line holds a text. */
  readonly killWorldOf: (marker: string) => Promise<void>;
  /** How much slower it is than a machine of its own. */
  readonly patience: number;
};

export const HERE: Place = {
  processesWith: (marker) => Promise.resolve(processesWith(marker)),
  killWorldOf: (marker) => {
    const [command = 0] = processesWith(marker);
    // A command's parent is its leader, and that one's is PID 1 of the world.
    process.kill(parentOf(parentOf(command)), "SIGKILL");
    return Promise.resolve();
  },
  patience: 1,
};
