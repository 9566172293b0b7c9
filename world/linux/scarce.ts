import { WorldUnavailable } from "../model/unavailable.ts";

export const SCARCE_HINT =
  "Try again when fewer worlds are warm, or start the broker with room for more open files and processes (ulimit -n, -u)";

/** Whether an error says that there is no more of something, now. */
export function isScarce(code: string | undefined): boolean {
  return code === "EMFILE" || code === "ENFILE" || code === "EAGAIN";
}

/** Reads what a world is made by. Out of descriptors there is none: what could not be looked at is not what is not there. */
export function unlessScarce<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof Error) || !isScarce((error as NodeJS.ErrnoException).code)) throw error;
    throw new WorldUnavailable(`Cannot look at the host: ${error.message}`, SCARCE_HINT, { cause: error });
  }
}
