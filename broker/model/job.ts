import { isRefusal, type Refusal } from "./refusal.ts";
import type { ExecuteRequest, SpanIdempotency, WorldImage } from "../../schemas/generated/types.ts";
import type { BaseEnvironment } from "./environment.ts";
import type { Effective } from "./effective.ts";
import type { Live } from "./live.ts";
import type { Decision } from "../policy/index.ts";
import type { Place, Session } from "./place.ts";
import type { UsedScopes } from "./scope.ts";
import { type KnownSecrets, secretsIn } from "../secrets/redact.ts";
import type { Site } from "./site.ts";

/** A valid call with its place, policies and decision. The command has not run. */
export type Job = {
  readonly span: string;
  /** The `x-request-id` of the waiting execute call; absent when no call waits. */
  readonly call?: string;
  /** Absent: the outputs are in the reply. */
  readonly live?: Live;
  /** Name of the command's own home; absent: the command sees the user's home as its policies show it. */
  readonly ownHome?: string;
  /** The job is a program that a running command starts: its input is whatever that command gives it. */
  readonly isStart?: boolean;
  /** The first of its argv, where it is another name than its file's: a program may act by it (`exec -a`). */
  readonly startedAs?: string;
  /** A check asks about a call whose input would arrive while the command runs. */
  readonly wouldStream?: boolean;
  /** The call is a file operation: the request's argv are words for people, and no command. */
  readonly isFileCall?: boolean;
  readonly agent: string;
  readonly request: ExecuteRequest;
  readonly argv: readonly string[];
  readonly place: Place;
  /** The place that the call named; `place` may be where the session's last command ended (`session_key`). */
  readonly called: Place;
  /** The variables that the call sent; `request.env` has those of its session too. */
  readonly sent: ExecuteRequest["env"];
  /** What the caller is told of where and how the command begins. */
  readonly told: readonly string[];
  readonly session: Session;
  readonly effective: Effective;
  readonly site: Site;
  readonly decision: Decision;
  readonly environment: BaseEnvironment;
  readonly worldImage: WorldImage;
  /** The token's scopes beyond the policy, or the refusal of a worthless token; null without a token. */
  readonly scopes: UsedScopes | Refusal | null;
  /** Id of the approval that permits the command; null without an approval. */
  readonly approval: string | null;
  /** The project's commit at the time of the call; null outside git. */
  readonly projectCommit: string | null;
  /** Hash of the project's files at the time of the call; null when not yet computed. */
  readonly dirtyHash: string | null;
  /** Identifies retries of the same call; undefined without an idempotency_key. */
  readonly idempotency: SpanIdempotency | undefined;
  /** Set for replays. */
  readonly replays?: Replayed;
};

export type Replayed = {
  /** The replayed span. */
  readonly span: string;
  /** The named policy; undefined when the replay names no policy. */
  readonly under: string | undefined;
  /** Returns the named policy's current version, when the policy replaces the assigned policy. */
  readonly follow: (() => Effective | undefined) | undefined;
  /** The variables of an ordinary command today; a replay gets the recorded PATH and locale instead. */
  readonly today: BaseEnvironment["variables"];
};

/** Returns the scopes in force for the command, if any. */
export function scopesOfJob({ scopes }: Job): UsedScopes | undefined {
  return scopes === null || isRefusal(scopes) ? undefined : scopes;
}

/** Whether the command runs on an overlay of the project. */
export function isIsolated(job: Job): boolean {
  return job.decision.verdict === "isolate" || job.replays !== undefined;
}

/**
 * Policies whose deny rows for autorun files do not bind the command, because its changes are held. Replays and previews of a
 * plain command run on an overlay too, but must meet the same rules as the plain command.
 */
export function heldByPolicies(job: Job): readonly string[] {
  return willBeIsolated(job) ? job.decision.isolatedBy : [];
}

/** Whether the policy isolates the command, if need be after a person's yes. */
export function willBeIsolated({ decision: { verdict, approved } }: Job): boolean {
  return verdict === "isolate" || (verdict === "ask" && approved === "isolate");
}

/** Whether the overlay's changes are kept for review. */
export function holdsChanges(job: Job): boolean {
  return isIsolated(job) && job.replays === undefined;
}

/**
 * The secret values of the command's environment, recognized by their variables' names: redacted wherever they occur in a line.
 */
export function secretsOfJob({
  request: { env },
  environment: { secrets },
}: Pick<Job, "request" | "environment">): KnownSecrets {
  return env === undefined ? secrets : new Map([...secrets, ...secretsIn(env)]);
}
