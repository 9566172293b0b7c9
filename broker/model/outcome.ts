import type { ExecuteReply } from "../../schemas/generated/types.ts";
import type { Refusal } from "./refusal.ts";

/** The two ways an execute call ends: the command ran, whatever came of it, or nothing of it ran. */
export type Outcome =
  | {
      readonly kind: "ran";
      readonly reply: ExecuteReply;
      /** Called by whoever has sent the reply, or will not: its outputs are in memory until then. Absent: nothing hangs on it. */
      readonly sent?: () => void;
    }
  | { readonly kind: "refused"; readonly error: Refusal };
