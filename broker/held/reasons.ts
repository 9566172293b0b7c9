import { quoted } from "../model/refusal.ts";
import { changePath } from "./change-path.ts";

/** Reasons that an answer lists. */
const MAX_REASONS = 1000;

/** Why a path cannot be applied, discarded or taken back: its bytes, and a sentence. */
export type Reason = { readonly path: string; readonly reason: string };

/** For an answer. */
export function listed(reasons: readonly Reason[]): Reason[] {
  return reasons.slice(0, MAX_REASONS).map(({ path, reason }) => ({ path: changePath(path), reason }));
}

/** The first three; the answer lists the others. */
export function reasonWords(reasons: readonly Reason[]): string {
  const some = reasons.slice(0, 3).map(({ path, reason }) => `${quoted(changePath(path))}: ${reason}`);
  const more = reasons.length - some.length;
  return `${some.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}
