/** The journey's view of a command whose input and output travel while it runs. */
import type { ExecuteReply } from "../../schemas/generated/types.ts";
import type { CommandRun, LiveInput } from "../../world/backend.ts";

/** Known when the command starts. */
export type LiveStart = Pick<
  ExecuteReply,
  "span_id" | "world_id" | "session_id" | "agent_id" | "policy_id" | "policy_hash" | "decision" | "isolation"
> & {
  /** Whether the command has a terminal. */
  readonly pty: boolean;
};

export type Live = {
  /** Undefined: the command reads /dev/null. */
  readonly input: LiveInput | undefined;
  /** Whether a person or program has sent input, or could type it: then the span does not record the whole call. */
  readonly hasUnkeptInput: boolean;
  /** Called once the start is on record, before the command begins. */
  readonly started: (start: LiveStart) => void;
  /** Called at once after the command began. */
  readonly begin: (run: CommandRun) => void;
  /** Takes output; `bytes` are valid only during the call, and `taken` is called when more may come. */
  readonly output: (stream: "stdout" | "stderr", bytes: Uint8Array, taken: () => void) => void;
};
