/** The time limit of one command, and its source: the call, the default, or a policy. Pure. */
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import { durationMs } from "./limits.ts";

/** Default time limit in milliseconds. */
const DEFAULT_TIMEOUT_MS = 120_000;

/** The policy key that limits every command: subject of the violation span of a command ended by this limit. */
export const TIME_LIMIT = "commands.timeout";

export type TimeLimit = {
  /** Infinite without a limit. */
  readonly ms: number;
  readonly by: "call" | "default" | "policy" | "nobody";
  /** The sentence for a command ended by this limit. */
  readonly ended: string;
};

/** Returns the lowest limit; between equal limits the policy's, because only the operator can change a policy. */
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
    return {
      ms,
      by: "call",
      ended: `${endedAfter(ms)}: the call set this limit (timeout_ms: ${ms}; --timeout of substrate exec)`,
    };
  if (none === true) return NO_LIMIT;
  const ended = `${endedAfter(DEFAULT_TIMEOUT_MS)}, the default limit: send 'timeout_ms', up to 86400000`;
  return { ms: DEFAULT_TIMEOUT_MS, by: "default", ended };
}

const NO_LIMIT: TimeLimit = { ms: Number.POSITIVE_INFINITY, by: "nobody", ended: "" };

function limitOfPolicy({ id, document, rules }: Parameters<typeof timeLimitOf>[1][number]): TimeLimit {
  const text = document.commands?.timeout ?? null;
  if (text === null) return NO_LIMIT;
  const ms = durationMs(text);
  const ended = `${endedAfter(ms)}: policy '${id}' limits every command (commands.timeout: ${text}, ${rules.sources.timeout})`;
  return { ms, by: "policy", ended };
}

function endedAfter(ms: number): string {
  return `The command was ended after ${durationWords(ms)}`;
}

/** `500 ms`, `90 s`, `30 min`, `2 h`: the largest unit without a remainder. */
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
