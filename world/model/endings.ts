/** How a command ended, and its measured resource use. */

/** Resource use of a command's whole process tree; null where the host cannot measure. */
export type RunUsage = {
  readonly cpuMs: number | null;
  /** Of the whole tree if the command has a memory controller; otherwise of the largest process. */
  readonly memoryPeakBytes: number | null;
  /** Maximum of simultaneous processes and threads; null without a pids controller. */
  readonly processes: number | null;
};

/** The possible endings of a command. */
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
