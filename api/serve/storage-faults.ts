import type { Log } from "../http/context.ts";

/**
 * When a commit fails, lmdb rejects the promises of the writes, which their callers look at, and one of its own, which
 * nobody can. Node ends a process for such a rejection: a full disk then took every world with it. Those are logged;
 * any other unhandled rejection still ends the process.
 */
export function surviveStorageFaults(log: Log): () => void {
  const onRejection = (error: unknown): void => {
    if (!isCommitFailure(error)) throw error;
    log.error({ err: error }, "The database cannot be written");
  };
  // lmdb also prints what went wrong, and the file that stderr leads to may lie on the same full disk.
  const onPrintError = (): void => {};
  process.on("unhandledRejection", onRejection);
  process.stderr.on("error", onPrintError);
  return () => {
    process.off("unhandledRejection", onRejection);
    process.stderr.off("error", onPrintError);
  };
}

function isCommitFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (
    "commitError" in error ||
    /^(Commit failed|No space left on device|Disk quota exceeded|Input\/output error)/.test(error.message)
  );
}
