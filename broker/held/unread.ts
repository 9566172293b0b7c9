/** Refuses to read held changes, because there are too many or too many calls ask for them. */
import { isCrowded, isTooLarge } from "../../world/backend.ts";
import { type Refusal, refusal } from "../model/refusal.ts";

/** Returns the refusal for an error of a store's `list`; undefined for every other error. */
export function unreadHeld(error: unknown, span: string): Refusal | undefined {
  if (isTooLarge(error))
    return refusal(
      "too_large",
      "The command changed too many paths to be shown or applied: their list is longer than 64 MiB",
      `Discard the changes ('substrate discard ${span}'), then run the command again so that it changes less at a time`,
    );
  if (isCrowded(error))
    return refusal(
      "busy",
      "Too many calls wait for the held changes of this project",
      "Wait until they are answered, then ask again",
      { retry_after_ms: 1000 },
    );
  return undefined;
}
