import type { Log } from "../http/context.ts";

/** Errors of a disk or process that is full, not of a program that is wrong. */
const FULL: ReadonlySet<unknown> = new Set(["ENOSPC", "EDQUOT", "EIO", "EROFS", "EMFILE", "ENFILE"]);

/**
 * Logs failed commits of lmdb instead of exiting. After a failed commit lmdb rejects the promises of the writes, handled by their
 * callers, and an internal promise without any handler. Node exits on such a rejection, so a full disk ended every world. The same
 * for what the kernel refuses to a promise that nobody awaits. Other unhandled rejections still end the process.
 */
export function surviveStorageFaults(log: Log): () => void {
  const onRejection = (error: unknown): void => {
    if (isCommitFailure(error)) return log.error({ err: error }, "Cannot write the database");
    if (!FULL.has((error as NodeJS.ErrnoException | undefined)?.code)) throw error;
    log.error({ err: error }, "A step failed because the disk is full or too many files are open");
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
