import type { RootDatabase } from "lmdb";
import type { SpanRecord } from "./trace.ts";

/**
 * State counted from the lines of the trace; the trace decides. The state is committed together with the index's watermark; after
 * a crash, the lines behind the watermark are replayed. The state outlives the lines: a cut or moved trace reduces no count.
 */
export type Follower = {
  /** Called once before any line: loads the committed state. */
  readonly open: (database: RootDatabase) => void;
  /** Processes a line already written to the file. Runs on the path of a command: must not wait or throw. */
  readonly note: (line: SpanRecord) => void;
  /** Returns a snapshot of uncommitted changes. */
  readonly changes: () => Changes;
  /**
   * Returns the time (milliseconds since 1970) from which lines are needed to rebuild a lost database; such lines are not
   * dropped.
   */
  readonly needs: () => number;
};

export type Changes = {
  /** Starts the writes to LMDB; all writes within one turn of the event loop form one transaction. */
  readonly write: () => readonly Promise<unknown>[];
  readonly committed: () => void;
};
