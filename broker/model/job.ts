import { isRefusal, type Refusal } from "./refusal.ts";
import type { ExecuteRequest, SpanIdempotency, WorldImage } from "../../schemas/generated/types.ts";
import type { BaseEnvironment } from "./environment.ts";
import type { Effective } from "./effective.ts";
import type { Decision } from "../policy/index.ts";
import type { Place, Session } from "./place.ts";
import type { UsedScopes } from "./scope.ts";
import { type KnownSecrets, secretsIn } from "../secrets/redact.ts";
import type { Site } from "./site.ts";

/** A call that makes sense: where, under which rules, and what was decided. Nothing has run. */
export type Job = {
  readonly span: string;
  /** The `x-request-id` of the execute call; absent where none waits for the command. */
  readonly call?: string;
  readonly agent: string;
  readonly request: ExecuteRequest;
  readonly argv: readonly string[];
  readonly place: Place;
  readonly session: Session;
  readonly effective: Effective;
  readonly site: Site;
  readonly decision: Decision;
  readonly environment: BaseEnvironment;
  readonly worldImage: WorldImage;
  /** What its token gives it beyond the policy, or why the token is worth nothing; null without one. */
  readonly scopes: UsedScopes | Refusal | null;
  /** The approval that it runs by; null without one. */
  readonly approval: string | null;
  /** Of the project when the command was asked for; null outside git. */
  readonly projectCommit: string | null;
  /** Of the project's files when it was asked for; null when nobody has looked. */
  readonly dirtyHash: string | null;
  /** What a retry of this call has in common with it; undefined without an idempotency_key. */
  readonly idempotency: SpanIdempotency | undefined;
  /** Of a replay. */
  readonly replays?: Replayed;
};

export type Replayed = {
  /** What it repeats. */
  readonly span: string;
  /** The policy that it was asked to run under, if one was named. */
  readonly under: string | undefined;
  /** That policy as it is whenever it is asked, where it holds instead of the assigned one. */
  readonly follow: (() => Effective | undefined) | undefined;
  /** What a command that is no replay would find: this one finds the recorded PATH and locale. */
  readonly today: BaseEnvironment["variables"];
};

/** The scopes that hold for it; undefined without any. */
export function scopesOfJob({ scopes }: Job): UsedScopes | undefined {
  return scopes === null || isRefusal(scopes) ? undefined : scopes;
}

/** Whether the command runs on an overlay of the project. */
export function isIsolated(job: Job): boolean {
  return job.decision.verdict === "isolate" || job.replays !== undefined;
}

/**
 * The policies whose rows about files that tools run later say nothing of it, because its changes are held. The replay of a plain
 * command, and a look at what one would do, run on an overlay too and must find what the command finds.
 */
export function heldByPolicies({ decision: { verdict, approved, isolatedBy } }: Job): readonly string[] {
  return verdict === "isolate" || (verdict === "ask" && approved === "isolate") ? isolatedBy : [];
}

/** Whether what it changes there is kept for somebody to look at. */
export function holdsChanges(job: Job): boolean {
  return isIsolated(job) && job.replays === undefined;
}

/** What of its environment may stand in no line, wherever it turns up: its values under names that say so. */
export function secretsOfJob({
  request: { env },
  environment: { secrets },
}: Pick<Job, "request" | "environment">): KnownSecrets {
  return env === undefined ? secrets : new Map([...secrets, ...secretsIn(env)]);
}
