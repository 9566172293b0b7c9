import { WorldUnavailable } from "../../world/backend.ts";
import { type Refusal, refusal } from "./refusal.ts";

/** Returns the refusal for a world that cannot be made or reached; undefined for every other error. */
export function unavailable(error: unknown): Refusal | undefined {
  if (!(error instanceof WorldUnavailable)) return undefined;
  return refusal("isolation_unavailable", error.message, error.hint);
}
