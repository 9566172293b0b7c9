import type { OnProgress } from "./catch-up.ts";
import type { TraceLimits } from "./retention.ts";

export type TraceOptions = {
  readonly limits?: () => TraceLimits;
  /** Spans whose lines are needed for as long as they are named here: those that hold changes. */
  readonly held?: () => readonly string[];
  /** Told of long work, in bytes: what is read, of how much. */
  readonly onProgress?: OnProgress;
};
