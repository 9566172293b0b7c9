/** The journey's view of a command whose input and output travel while it runs. */
import type { ExecuteReply, Notice } from "../../schemas/generated/types.ts";
import type { Refusal } from "./refusal.ts";
import type { CommandRun, LiveInput } from "../../world/backend.ts";

/** Known when the command starts. */
export type LiveStart = Pick<
  ExecuteReply,
  "span_id" | "world_id" | "session_id" | "agent_id" | "policy_id" | "policy_hash" | "decision" | "isolation"
> & {
  /** Whether the command has a terminal. */
  readonly pty: boolean;
  /** Of `substrate shell`: begins each of the shell's prompts, and no program's output can guess it. */
  readonly prompt_word?: string;
};

/** What becomes of a line of a shell: typed there, or run apart, in a folder of the shell's project, because its changes are held. */
export type LineVerdict = { readonly run: "here" } | { readonly run: "apart"; readonly cwd: string };

export type ShellLine = {
  readonly cmd: string;
  /** The shell's folder, by its own word. */
  readonly cwd: string;
  /** Recognises the line's questions among those that wait for a person. */
  readonly call?: string | undefined;
  /** How long to wait for a person's answer. */
  readonly approvalWaitMs: number;
};

export type LineJudge = {
  readonly judge: (line: ShellLine, signal: AbortSignal) => Promise<LineVerdict | Refusal>;
  /** Records what the last line's builtins did; returns what happened in the shell since this was last called. */
  readonly ended: (exit: number) => readonly Notice[];
};

export type Live = {
  /** Undefined: the command reads /dev/null. */
  readonly input: LiveInput | undefined;
  /** Whether a person or program has sent input, or could type it: then the span does not record the whole call. */
  readonly hasUnkeptInput: boolean;
  /** Of the shell of `substrate shell`: a random word in its prompts. */
  readonly promptWord: string | undefined;
  /** Called once the start is on record, before the command begins; with a judge of the shell's lines. */
  readonly started: (start: LiveStart, lines?: LineJudge) => void;
  /** Called at once after the command began. */
  readonly begin: (run: CommandRun) => void;
  /** Takes output; `bytes` are valid only during the call, and `taken` is called when more may come. */
  readonly output: (stream: "stdout" | "stderr", bytes: Uint8Array, taken: () => void) => void;
};
