import type { ReplayContext } from "../../schemas/generated/types.ts";
import type { Variables } from "../model/environment.ts";
import { environmentHash } from "../settings/environment.ts";
import { type Job, secretsOfJob } from "../model/job.ts";
import { type KnownSecrets, type Redaction, redact, secretsIn } from "../secrets/redact.ts";

/** Names of the fields that may contain a credential: variables may hold any text. */
export const CONTEXT_PLACES = { path: "replay_context.path", locale: "replay_context.locale" } as const;

type Surroundings = Pick<ReplayContext, "path" | "locale" | "env_hash"> & {
  readonly redacted: readonly Redaction[];
};

/** Caches the redacted context per environment, because redaction is expensive. */
const known = new WeakMap<Job["environment"], Surroundings>();

/** Returns the context that a replay must restore or compare, with its redactions. */
export function replayContext(job: Job): {
  readonly context: ReplayContext;
  readonly redacted: readonly Redaction[];
} {
  const { redacted, ...surroundings } = surroundingsOf(job);
  return {
    redacted,
    context: {
      ...surroundings,
      umask: (job.request.umask ?? "022").padStart(4, "0"),
      cwd: job.place.cwd,
      policy_id: job.effective.id,
      policy_commit: job.effective.commit,
      world_image: job.worldImage,
      project_commit: job.projectCommit,
      dirty_hash: job.dirtyHash,
    },
  };
}

function surroundingsOf(job: Job): Surroundings {
  const added = job.request.env;
  if (added === undefined) return surroundingsIn(job.environment);
  const env = { ...job.environment.variables, ...added };
  const hash = environmentHash(env);
  // Redacting a PATH takes some 20 µs, so a call that only adds other variables reuses the cached result.
  const isSame = SHOWN.every((name) => added[name] === undefined) && secretsIn(added).size === 0;
  return isSame
    ? { ...surroundingsIn(job.environment), env_hash: hash }
    : withoutSecrets(env, hash, secretsOfJob(job));
}

/** The variables recorded in a context. */
const SHOWN = ["PATH", "LC_ALL", "LANG"] as const;

function surroundingsIn(environment: Job["environment"]): Surroundings {
  const found =
    known.get(environment) ?? withoutSecrets(environment.variables, environment.hash, environment.secrets);
  known.set(environment, found);
  return found;
}

function withoutSecrets(env: Variables, hash: string, secrets: KnownSecrets): Surroundings {
  const redacted: Redaction[] = [];
  const kept = (value: string | null, place: string): string | null => {
    if (value === null) return null;
    const { text, redacted: replaced } = redact(value, place, secrets);
    redacted.push(...replaced);
    return text;
  };
  const path = kept(env["PATH"] ?? null, CONTEXT_PLACES.path);
  const locale = kept(localeOf(env), CONTEXT_PLACES.locale);
  return { path, env_hash: hash, locale, redacted };
}

/** Returns the deciding locale variable, in the order of setlocale(3). */
export function localeOf(env: Variables): string | null {
  return env["LC_ALL"] ?? env["LANG"] ?? null;
}
