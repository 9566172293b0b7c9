import type { GivenCommand } from "../../schemas/generated/types.ts";
import type { Job } from "../model/job.ts";
import { isUnchangedBySpan } from "../secrets/redact.ts";
import type { SpanRecord } from "./trace.ts";

/** How a command was given, for whoever runs it once more. */
export function givenOf(job: Job): GivenCommand {
  const { request, replays } = job;
  const { argv, profile, background } = request;
  const missing = notKept(job);
  const shell = shellVariables(job);
  return {
    form: argv === undefined ? (request.shell ?? "sh") : "argv",
    ...(profile === undefined ? {} : { profile }),
    ...(shell === undefined ? {} : { caller_env: shell }),
    ...(missing.length === 0 ? {} : { not_kept: [...missing] }),
    ...(background === "keep" ? { keeps_background: true } : {}),
    ...(replays === undefined ? {} : { replays: replays.span }),
    ...(replays?.under === undefined ? {} : { under: replays.under }),
  };
}

/** Whether its span holds all that it was given. */
export function isKept(job: Job): boolean {
  const { argv = [], background } = job.request;
  return notKept(job).length === 0 && background !== "keep" && argv.every(isUnchangedBySpan);
}

/** Whether a command that ended so can be compared with another run of it. */
export function isRepeatable(outcome: SpanRecord["outcome"]): boolean {
  return outcome === "ended" || outcome === "timed_out";
}

/** Undefined also where one of them looks like a secret: then the line says that variables are not kept. */
function shellVariables({ environment: { callers } }: Job): GivenCommand["caller_env"] {
  return callers?.areKept === true ? callers.variables : undefined;
}

function notKept(job: Job): NonNullable<GivenCommand["not_kept"]> {
  const { env, stdin_b64, scope_token } = job.request;
  const isLost = job.environment.callers?.areKept === false;
  return [
    ...(env === undefined && !isLost ? [] : (["env"] as const)),
    ...(stdin_b64 === undefined ? [] : (["stdin"] as const)),
    ...(scope_token === undefined ? [] : (["scope_token"] as const)),
  ];
}
