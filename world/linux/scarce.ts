import { WorldUnavailable } from "../model/unavailable.ts";

export const SCARCE_HINT =
  "Try again when fewer worlds are warm, or start the broker with higher limits of open files and processes (ulimit -n, -u)";

/** Whether an error reports a temporary shortage. */
export function isScarce(code: string | undefined): boolean {
  return code === "EMFILE" || code === "ENFILE" || code === "EAGAIN";
}

/** Runs a read on which a world's plan depends. A shortage of descriptors throws: an unreadable file must not count as missing. */
export function unlessScarce<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Error) || !isScarce((error as NodeJS.ErrnoException).code)) throw error;
    throw new WorldUnavailable(`Cannot read the host's state: ${error.message}`, SCARCE_HINT, {
      cause: error,
    });
  }
}
