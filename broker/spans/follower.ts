import type { RootDatabase } from "lmdb";
import type { SpanRecord } from "./trace.ts";

/**
 * Something that is counted from the lines of the trace, so that the trace is its truth. What it knows is committed
 * together with the index's watermark; after a crash it is told the lines that stand behind that mark once more. It
 * outlives the lines: when the trace was cut or moved away, what was counted stays counted.
 */
export type Follower = {
  /** Called once, before any line: reads what was committed. */
  readonly open: (database: RootDatabase) => void;
  /** A line that stands in the file now. On the path of a command: no waiting, nothing that throws. */
  readonly note: (line: SpanRecord) => void;
  /** What is not committed yet, as of now. */
  readonly changes: () => Changes;
  /** Lines from this time on (milliseconds since 1970) it would need again if the database were lost: they are not dropped. */
  readonly needs: () => number;
};

export type Changes = {
  /** Hands the writes to LMDB; all of one turn of the event loop are one transaction. */
  readonly write: () => readonly Promise<unknown>[];
  readonly committed: () => void;
};
