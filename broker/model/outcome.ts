import type { ExecuteReply } from "../../schemas/generated/types.ts";
import type { Refusal } from "./refusal.ts";

/** The two endings of an execute call: the command ran, with any result, or was refused before running. */
export type Outcome =
  | {
      readonly kind: "ran";
      readonly reply: ExecuteReply;
      /** The broker's own lines at the end of the reply's stderr; absent for a stored reply. */
      readonly complaint?: Buffer;
      /** Releases the outputs from memory; called after sending the reply, or after giving up. Absent: no memory to release. */
      readonly sent?: () => void;
    }
  | { readonly kind: "refused"; readonly error: Refusal };
