/** How a command ended, and its measured resource use. */

/** Resource use of a command's whole process tree; null where the host cannot measure. */
export type RunUsage = {
  readonly cpuMs: number | null;
  /** Of the whole tree if the command has a memory controller; otherwise of the largest process. */
  readonly memoryPeakBytes: number | null;
  /** Maximum of simultaneous processes and threads; null without a pids controller. */
  readonly processes: number | null;
};

/** Told of every command that ran. */
type Ran = {
  readonly usage: RunUsage;
  readonly kept: number;
  readonly leftover: boolean;
  /** Processes still running some time after the main process had exited, and killed; absent: none. */
  readonly killedAfter?: number;
  /** Whether the main process had ended before the command was first signalled. */
  readonly overBefore?: true;
  /** TCP ports of the world's localhost that refused the command's last connect there; absent: none. */
  readonly closedPorts?: readonly number[];
};

/** The possible endings of a command. */
export type Ending =
  | ({ readonly kind: "exited"; readonly code: number } & Ran)
  | ({ readonly kind: "signalled"; readonly signal: string } & Ran)
  | { readonly kind: "not_started"; readonly step: string; readonly path: string; readonly errno: string }
  | { readonly kind: "world_lost"; readonly cause: string };
