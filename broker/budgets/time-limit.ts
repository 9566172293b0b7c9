/** How long one command may run, and who says so: its call, what holds for calls that say nothing, or a policy. Pure. */
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import { durationMs } from "./limits.ts";

/** What a call gets when nobody says how long its command may run, in milliseconds (CONTRACT §3). */
const DEFAULT_TIMEOUT_MS = 120_000;

/** The key of a policy that limits every command: what the violation span of one that it ended is about. */
export const TIME_LIMIT = "commands.timeout";

export type TimeLimit = {
  /** Infinite: there is none. */
  readonly ms: number;
  readonly by: "call" | "default" | "policy" | "nobody";
  /** A sentence for when it ends a command. */
  readonly ended: string;
};

/** The lowest holds; of equal ones the policy's is named, because nobody but the operator can change that. */
export function timeLimitOf(
  request: Pick<ExecuteRequest, "timeout_ms" | "no_time_limit">,
  policies: readonly Pick<CompiledPolicy, "id" | "document" | "rules">[],
): TimeLimit {
  return policies
    .map(limitOfPolicy)
    .reduce((lowest, one) => (one.ms <= lowest.ms ? one : lowest), limitOfCall(request));
}

function limitOfCall({ timeout_ms: ms, no_time_limit: none }: Parameters<typeof timeLimitOf>[0]): TimeLimit {
  if (ms !== undefined)
    return { ms, by: "call", ended: `${endedAfter(ms)}: its call said so (timeout_ms: ${ms})` };
  if (none === true) return NO_LIMIT;
  const ended = `${endedAfter(DEFAULT_TIMEOUT_MS)}, which is how long a call may take that says nothing: send 'timeout_ms', up to 86400000`;
  return { ms: DEFAULT_TIMEOUT_MS, by: "default", ended };
}

const NO_LIMIT: TimeLimit = { ms: Number.POSITIVE_INFINITY, by: "nobody", ended: "" };

function limitOfPolicy({ id, document, rules }: Parameters<typeof timeLimitOf>[1][number]): TimeLimit {
  const text = document.commands?.timeout ?? null;
  if (text === null) return NO_LIMIT;
  const ms = durationMs(text);
  const ended = `${endedAfter(ms)}: policy '${id}' lets no command run longer (commands.timeout: ${text}, ${rules.sources.timeout})`;
  return { ms, by: "policy", ended };
}

function endedAfter(ms: number): string {
  return `The command was ended after ${durationWords(ms)}`;
}

/** `500 ms`, `90 s`, `30 min`, `2 h`: in the largest unit that leaves no rest. */
function durationWords(ms: number): string {
  const units = [
    [3_600_000, "h"],
    [60_000, "min"],
    [1000, "s"],
  ] as const;
  const [length, unit] = units.find(([one]) => ms >= 2 * one && ms % one === 0) ??
    units.find(([one]) => ms === one) ?? [1, "ms"];
  return `${ms / length} ${unit}`;
}
