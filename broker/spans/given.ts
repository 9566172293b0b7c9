import type { GivenCommand } from "../../schemas/generated/types.ts";
import type { Job } from "../job.ts";
import { isUnchangedBySpan } from "./redact.ts";
import type { SpanRecord } from "./trace.ts";

/** How a command was given, for whoever runs it once more. */
export function givenOf({ request, replays }: Job): GivenCommand {
  const { argv, shell, profile, background } = request;
  const missing = notKept(request);
  return {
    form: argv === undefined ? (shell ?? "sh") : "argv",
    ...(profile === undefined ? {} : { profile }),
    ...(missing.length === 0 ? {} : { not_kept: [...missing] }),
    ...(background === "keep" ? { keeps_background: true } : {}),
    ...(replays === undefined ? {} : { replays: replays.span }),
    ...(replays?.under === undefined ? {} : { under: replays.under }),
  };
}

/** Whether its span holds all that it was given. */
export function isKept({ request }: Job): boolean {
  const { argv = [], background } = request;
  return notKept(request).length === 0 && background !== "keep" && argv.every(isUnchangedBySpan);
}

/** Whether a command that ended so can be compared with another run of it. */
export function isRepeatable(outcome: SpanRecord["outcome"]): boolean {
  return outcome === "ended" || outcome === "timed_out";
}

function notKept({ env, stdin_b64, scope_token }: Job["request"]): NonNullable<GivenCommand["not_kept"]> {
  return [
    ...(env === undefined ? [] : (["env"] as const)),
    ...(stdin_b64 === undefined ? [] : (["stdin"] as const)),
    ...(scope_token === undefined ? [] : (["scope_token"] as const)),
  ];
}
