import type { ExecuteRequest, SpanIdempotency, WorldImage } from "../schemas/generated/types.ts";
import type { BaseEnvironment } from "./environment.ts";
import type { Effective } from "./policies.ts";
import type { Decision } from "./policy/index.ts";
import type { Place } from "./projects.ts";
import type { Refusal } from "./refusal.ts";
import type { UsedScopes } from "./scopes/use-scopes.ts";
import type { Session } from "./sessions.ts";
import type { Site } from "./world-spec.ts";

/** A call that makes sense: where, under which rules, and what was decided. Nothing has run. */
export type Job = {
  readonly span: string;
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
  /** What a retry of this call has in common with it; undefined without an idempotency_key. */
  readonly idempotency: SpanIdempotency | undefined;
};

/** The scopes that hold for it; undefined without any. */
export function scopesOfJob({ scopes }: Job): UsedScopes | undefined {
  return scopes === null || "code" in scopes ? undefined : scopes;
}

/** Whether the command runs on an overlay of the project. */
export function isIsolated(job: Job): boolean {
  return job.decision.verdict === "isolate";
}
