import type { ExecuteReply } from "../schemas/generated/types.ts";
import type { Refusal } from "./refusal.ts";

/** The two ways an execute call ends: the command ran, whatever came of it, or nothing of it ran. */
export type Outcome =
  | { readonly kind: "ran"; readonly reply: ExecuteReply }
  | { readonly kind: "refused"; readonly error: Refusal };
