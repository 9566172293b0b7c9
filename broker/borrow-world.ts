import { join } from "node:path";
import { type WorldSpec, WorldUnavailable } from "../world/backend.ts";
import type { Broker } from "./broker.ts";
import { isIsolated, type Job } from "./job.ts";
import { type Refusal, refusal } from "./refusal.ts";
import { worldSpec } from "./world-spec.ts";
import type { Lease } from "./worlds.ts";

/** A world as the policy wants it, or why there is none. Nothing of the command has run. */
export async function borrowWorld(broker: Broker, job: Job): Promise<Lease | Refusal> {
  const { policies } = job.effective;
  const fresh = isIsolated(job) || policies.some((policy) => policy.document.world?.reuse_session === false);
  if (fresh && job.request.background === "keep") return cannotKeep();
  const spec = specFor(broker, job);
  try {
    const lease = fresh
      ? await broker.worlds.leaseFresh(spec)
      : await broker.worlds.lease(job.session.id, spec);
    const missing = missingParts(job, lease);
    if (missing.length === 0) return lease;
    lease.release(false);
    return unavailable(
      job,
      `The policy requires what this host cannot do: ${missing.join("; ")}`,
      "Take it off 'world.require', or use a host that can: GET /v1/health says what this one achieves",
    );
  } catch (error) {
    if (error instanceof WorldUnavailable) return unavailable(job, error.message, error.hint);
    throw error;
  }
}

function specFor(broker: Broker, job: Job): WorldSpec {
  const { policies, hash } = job.effective;
  if (!isIsolated(job)) return broker.warmSpecs.of(hash, policies, job.site);
  const access = { kind: "overlay", layers: join(broker.home.overlay, job.span) } as const;
  return worldSpec(policies, job.site, access, broker.around);
}

/** What `world.require` names and the world has not achieved, each with the world's own word for it. */
function missingParts(job: Job, lease: Lease): readonly string[] {
  const required = new Set(job.effective.policies.flatMap((policy) => policy.document.world?.require ?? []));
  const achieved = lease.world.isolation;
  return [...required].flatMap((part) =>
    isAchieved(part, achieved[part]) ? [] : [`${part} is '${achieved[part]}'`],
  );
}

function isAchieved(part: string, word: string): boolean {
  return word === "on" || (part === "capabilities" && word === "none");
}

function unavailable(job: Job, message: string, hint: string): Refusal {
  return refusal("isolation_unavailable", message, hint, { policy_id: job.effective.id });
}

function cannotKeep(): Refusal {
  return refusal(
    "invalid_request",
    "background: this command gets a world of its own that ends with it, received 'keep'",
    "Leave 'background' out, or start what shall stay with a command that is not isolated, under a policy that reuses worlds",
  );
}
