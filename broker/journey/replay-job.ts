/** Builds a job from a recorded command: today's rules in the recorded environment. Nothing runs, nothing is charged. */
import { isRefusal, type Refusal, refusal } from "../model/refusal.ts";
import type { ExecuteRequest } from "../../schemas/generated/types.ts";
import type { Broker } from "../broker.ts";
import { environmentFor } from "./caller-shell.ts";
import type { Variables } from "../model/environment.ts";
import { environmentHash } from "../settings/environment.ts";
import type { Job, Replayed } from "../model/job.ts";
import { judge } from "../policies/judge.ts";
import type { Effective } from "../model/effective.ts";
import { prepareJob } from "./prepare-job.ts";
import { secretsIn } from "../secrets/redact.ts";
import { notReplayable, type Recorded } from "../replay/recorded.ts";

/** The policy of a replay: today's, or a named policy that replaces or narrows today's. */
export type Under =
  | { readonly kind: "today" }
  | { readonly kind: "instead" | "narrowed"; readonly policy: string };

export function replayJob(broker: Broker, recorded: Recorded, under: Under): Job | Refusal {
  const request = requestOf(broker, recorded, under);
  const job = prepareJob(broker, recorded.agent, request);
  if (isRefusal(job)) return job.code === "invalid_request" ? gone(recorded, job) : job;
  const strange = otherProject(broker, recorded, job);
  if (strange !== undefined) return strange;
  const placed = under.kind === "instead" ? underPolicy(broker, job, under.policy) : job;
  if (isRefusal(placed)) return placed;
  return { ...surrounded(placed, recorded), replays: replayed(broker, recorded, under, placed) };
}

function replayed({ policies }: Broker, { span }: Recorded, under: Under, { environment }: Job): Replayed {
  const follow = (name: string): Effective | undefined => {
    const now = policies.named(name);
    return isRefusal(now) ? undefined : now;
  };
  return {
    span: span.span_id,
    under: under.kind === "today" ? undefined : under.policy,
    follow: under.kind === "instead" ? () => follow(under.policy) : undefined,
    today: environment.variables,
  };
}

/** Rebuilds the recorded request, except for waiting and charging, which follow today's policy. */
function requestOf(broker: Broker, recorded: Recorded, under: Under): ExecuteRequest {
  const { span, given, agent, cwd, command, stdin } = recorded;
  const profile = under.kind === "narrowed" ? under.policy : given.profile;
  const env = { ...restored(broker, recorded), ...recorded.env };
  return {
    agent_id: agent,
    ...command,
    cwd,
    ...(Object.keys(env).length === 0 ? {} : { env }),
    ...shellOf(recorded),
    ...(stdin === undefined ? {} : { stdin_b64: stdin }),
    ...(given.outputs === undefined ? {} : { outputs: given.outputs }),
    ...(recorded.context.umask === null ? {} : { umask: recorded.context.umask }),
    ...(profile === undefined || under.kind === "instead" ? {} : { profile }),
    parent_span: span.span_id,
    ...(span.timeout_ms === undefined ? { no_time_limit: true } : { timeout_ms: span.timeout_ms }),
  };
}

/** The caller's shell as recorded in the span. */
function shellOf({ given, context: { path } }: Recorded): Pick<ExecuteRequest, "caller_env"> {
  const { caller_env: variables } = given;
  return variables === undefined
    ? {}
    : { caller_env: { ...variables, ...(path === null ? {} : { PATH: path }) } };
}

/** Returns the recorded PATH if today's PATH differs. It is judged as strictly as a PATH in a request. */
function restored({ environments }: Broker, { context, given, env = {} }: Recorded): Variables {
  const { path } = context;
  if (given.caller_env !== undefined) return {};
  const isOther = path !== null && path !== environments.path && env["PATH"] === undefined;
  return isOther ? { PATH: path } : {};
}

/** Moves restored variables from the request to the recorded environment, and drops a locale that was not set at the time. */
function surrounded(job: Job, { context, given, env }: Recorded): Job {
  if (given.caller_env !== undefined) return job;
  const { LANG: lang, LC_ALL: all, ...base } = job.environment.variables;
  const isSupplied = env?.["LANG"] !== undefined || env?.["LC_ALL"] !== undefined;
  const locale = localeOf(isSupplied ? (all ?? lang ?? null) : context.locale, { lang, all });
  const path = context.path === null || env?.["PATH"] !== undefined ? {} : { PATH: context.path };
  const variables = { ...base, ...locale, ...path };
  const { env: _env, ...asked } = job.request;
  return {
    ...job,
    request: { ...asked, ...(env === undefined ? {} : { env }) },
    environment: {
      ...job.environment,
      variables,
      hash: environmentHash(variables),
      secrets: secretsIn(variables),
    },
  };
}

function localeOf(
  recorded: string | null,
  { lang, all }: { readonly lang: string | undefined; readonly all: string | undefined },
): Variables {
  if (recorded === null) return {};
  if (all === recorded) return { LC_ALL: all, ...(lang === undefined ? {} : { LANG: lang }) };
  return { LANG: recorded };
}

/** Judges the job under another policy instead of the assigned policy, so a person sees the effect before assigning it. */
function underPolicy(broker: Broker, job: Job, policy: string): Job | Refusal {
  const effective = broker.policies.named(policy);
  if (isRefusal(effective)) return effective;
  const environment = environmentFor(broker, effective, job.request, job.place, "agent");
  const decision = judge(broker, job.request, job.place, effective, environment);
  return { ...job, effective, decision, environment };
}

function gone({ span, cwd }: Recorded, { message }: Refusal): Refusal {
  return notReplayable(span, [`its folder '${cwd}' can no longer be used (${message})`]);
}

/** Refuses when the folder belongs to another project by now, even at the same path. */
function otherProject(broker: Broker, { span }: Recorded, job: Job): Refusal | undefined {
  const was = span.session_id === null ? undefined : broker.sessions.find(span.session_id)?.project;
  if (was === undefined || was === job.place.project) return undefined;
  return refusal(
    "not_replayable",
    `Span ${span.span_id} cannot be replayed: its folder belonged to project '${was}' and now belongs to '${job.place.project}'`,
    "Restore the project, or run the command again with POST /v1/execute",
  );
}
