import type { Log } from "../http/context.ts";

/**
 * Logs failed commits of lmdb instead of exiting. After a failed commit lmdb rejects the promises of the writes, handled by their
 * callers, and an internal promise without any handler. Node exits on such a rejection, so a full disk ended every world. Other
 * unhandled rejections still end the process.
 */
export function surviveStorageFaults(log: Log): () => void {
  const onRejection = (error: unknown): void => {
    if (!isCommitFailure(error)) throw error;
    log.error({ err: error }, "Cannot write the database");
  };
  // lmdb also prints the error, and stderr may be a file on the same full disk.
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
