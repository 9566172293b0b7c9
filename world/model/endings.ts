/** How a command ends, and what was measured of it by then. */

/** What was measured of a command's whole tree of processes; null where this host cannot measure it. */
export type RunUsage = {
  readonly cpuMs: number | null;
  /** Of the whole tree where the command has a memory controller; elsewhere that of its largest process. */
  readonly memoryPeakBytes: number | null;
  /** Processes and threads at once; null without a pids controller. */
  readonly processes: number | null;
};

/** The ways a command ends, one of them for every command. */
export type Ending =
  | {
      readonly kind: "exited";
      readonly code: number;
      readonly usage: RunUsage;
      readonly kept: number;
      readonly leftover: boolean;
    }
  | {
      readonly kind: "signalled";
      readonly signal: string;
      readonly usage: RunUsage;
      readonly kept: number;
      readonly leftover: boolean;
    }
  | { readonly kind: "not_started"; readonly step: string; readonly path: string; readonly errno: string }
  | { readonly kind: "world_lost"; readonly cause: string };
