import { isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";
import { unavailable } from "../model/unavailable.ts";
import { join } from "node:path";
import { DisabledWorld } from "../../world/backend.ts";
import type { Broker } from "../broker.ts";
import { newId } from "../model/ids.ts";
import { heldByPolicies, isIsolated, type Job, scopesOfJob } from "../model/job.ts";
import { followPolicies } from "../policies/judge.ts";
import type { Effective } from "../model/effective.ts";
import { leaseWorld } from "./lease-world.ts";
import type { UsedScopes } from "../model/scope.ts";
import { lacksNetwork, spendScopes } from "../scopes/use-scopes.ts";
import { openOwnHome } from "../worlds/own-home.ts";
import { type SpecOfFiles, worldSpec } from "../worlds/world-spec.ts";
import type { Lease } from "../worlds/worlds.ts";

/** Borrows a world that matches the policy, or refuses. The command has not started yet. */
export async function borrowWorld(broker: Broker, job: Job): Promise<Lease | Refusal> {
  if (job.request.world === "disabled") return withoutWorld(job);
  const scopes = scopesOfJob(job);
  const fresh = isIsolated(job) || scopes !== undefined || givesFreshWorlds(job.effective);
  if (fresh && job.request.background === "keep") return cannotKeep();
  if (job.ownHome !== undefined && isIsolated(job)) return cannotIsolate(job);
  return scopes === undefined ? await borrow(broker, job, fresh) : await borrowWith(broker, job, scopes);
}

/** A person has switched the world off: what only a world can do is refused. */
function withoutWorld(job: Job): Lease | Refusal {
  const { request, site, live } = job;
  const needs = [
    [isIsolated(job), "the policy isolates this command"],
    [scopesOfJob(job) !== undefined, "a scope token opens a world"],
    [live?.input?.terminal !== undefined, "a terminal is a world's"],
    [job.ownHome !== undefined, "a home of its own is a world's"],
    [request.session_key !== undefined, "a world keeps the state of a session's shell"],
    [request.background === "keep", "a world keeps processes that outlive their command"],
  ] as const;
  const [, why] = needs.find(([isNeeded]) => isNeeded) ?? [];
  if (why !== undefined)
    return refusal(
      "isolation_unavailable",
      `The world is disabled (SUBSTRATE_WORLD=disabled), and ${why}`,
      "Unset SUBSTRATE_WORLD, so that the command runs in a world",
      { policy_id: job.effective.id },
    );
  const world = new DisabledWorld(newId("wld"), site.project, site.identity);
  return asRequired(job.effective, {
    world,
    first: false,
    release: () => void world.end("its command has ended"),
  });
}

/** Borrows with a scope token: the token is spent before the world is made, and given back only after a refusal. */
async function borrowWith(broker: Broker, job: Job, scopes: UsedScopes): Promise<Lease | Refusal> {
  const spent = spendScopes(broker.scopeTokens, job.place, scopes, isIsolated(job));
  if (isRefusal(spent)) return spent;
  const lease = networkedFor(scopes, await borrow(broker, job, true));
  if (isRefusal(lease)) spent.giveBack();
  return lease;
}

function networkedFor(scopes: UsedScopes, lease: Lease | Refusal): Lease | Refusal {
  if (isRefusal(lease)) return lease;
  const lacking = lacksNetwork(scopes, lease.world);
  if (lacking !== undefined) lease.release(false);
  return lacking ?? lease;
}

async function borrow(broker: Broker, job: Job, fresh: boolean): Promise<Lease | Refusal> {
  const effective = scopesOfJob(job)?.effective ?? job.effective;
  const session = broker.sessions.ofWorlds(job.session);
  try {
    const order = { session, spec: specFor(broker, job), effective, now: asItIs(broker, job), fresh };
    const lease = asRequired(job.effective, await leaseWorld(broker, order));
    return job.replays === undefined || isRefusal(lease) ? lease : onOverlay(lease);
  } catch (error) {
    return unavailableUnder(job.effective, error);
  }
}

/** Requires an overlay: a replay never writes to the project itself. */
function onOverlay(lease: Lease): Lease | Refusal {
  const { overlay } = lease.world.isolation;
  if (overlay === "on") return lease;
  lease.release(false);
  return refusal(
    "isolation_unavailable",
    `Cannot replay: this host cannot make an overlay of the project (${overlay})`,
    "Replay on a host that can make overlays; 'substrate world doctor' shows what this host lacks",
  );
}

/** Returns the lease if its world provides every part listed in `world.require`; otherwise releases the lease and refuses. */
export function asRequired(effective: Effective, lease: Lease): Lease | Refusal {
  const missing = missingParts(effective, lease);
  if (missing.length === 0) return lease;
  lease.release(false);
  return refusal(
    "isolation_unavailable",
    `The policy requires isolation that this host cannot provide: ${missing.join("; ")}`,
    "Remove it from 'world.require', or use another host; 'substrate world doctor' shows what this host lacks and how to mend it",
    { policy_id: effective.id },
  );
}

/** Turns `WorldUnavailable` into a refusal under a policy. Throws every other error again. */
export function unavailableUnder(effective: Effective, error: unknown): Refusal {
  const away = unavailable(error);
  if (away === undefined) throw error;
  return { ...away, policy_id: effective.id };
}

export function givesFreshWorlds({ policies }: Effective): boolean {
  return policies.some((policy) => policy.document.world?.reuse_session === false);
}

/**
 * Returns a function for the job's current policies. A token's scopes were granted under one policy content, so a changed policy
 * hash drops the scopes.
 */
function asItIs(broker: Broker, job: Job): () => Effective | undefined {
  if (job.replays?.follow !== undefined) return job.replays.follow;
  const scopes = scopesOfJob(job);
  const follow = followPolicies(broker, job.agent, job.place, job.request.profile, job.effective);
  return () => {
    const effective = follow();
    return scopes !== undefined && effective?.hash === job.effective.hash ? scopes.effective : effective;
  };
}

function specFor(broker: Broker, job: Job): SpecOfFiles {
  if (job.ownHome === undefined) return sharedSpecFor(broker, job);
  const { home, around } = broker;
  const needs = { homes: home.homes, userHome: around.home, uid: broker.projectRules().uid };
  return { ...sharedSpecFor(broker, job), ownHome: openOwnHome(needs, job.ownHome, job.site.project) };
}

function sharedSpecFor(broker: Broker, job: Job): SpecOfFiles {
  const scopes = scopesOfJob(job);
  const { policies, hash } = scopes?.effective ?? job.effective;
  if (isIsolated(job)) {
    const layers = join(broker.home.overlay, job.span);
    const heldBy = heldByPolicies(job);
    return scopes === undefined
      ? broker.warmSpecs.isolated(hash, policies, job.site, layers, heldBy)
      : worldSpec(policies, job.site, { kind: "overlay", layers }, broker.around, heldBy);
  }
  return broker.warmSpecs.placed(
    scopes === undefined
      ? broker.warmSpecs.of(hash, policies, job.site)
      : worldSpec(policies, job.site, { kind: "direct" }, broker.around),
  );
}

/** Parts listed in `world.require` and missing in the world, each with the state reported by the world. */
function missingParts({ policies }: Effective, lease: Lease): readonly string[] {
  const required = new Set(policies.flatMap((policy) => policy.document.world?.require ?? []));
  const achieved = lease.world.isolation;
  return [...required].flatMap((part) =>
    isAchieved(part, achieved[part]) ? [] : [`${part} is '${achieved[part]}'`],
  );
}

function isAchieved(part: string, word: string): boolean {
  return word === "on" || word.startsWith("on: ") || (part === "capabilities" && word === "none");
}

/** An overlay holds the changes of the project, and a home of its own has none. */
function cannotIsolate({ effective, decision }: Job): Refusal {
  const rule = decision.rule === null ? "" : ` (rule ${quoted(decision.rule.pattern)})`;
  return refusal(
    "invalid_request",
    `Run it with --real-home (in a request: leave 'home' out): the policy isolates this command${rule}, and its writes to a home of its own could not be held`,
    "'substrate run --real-home -- PROGRAM', or let the profile allow the program: the commands that it starts are judged all the same",
    { policy_id: effective.id },
  );
}

function cannotKeep(): Refusal {
  return refusal(
    "invalid_request",
    "background: must be 'kill', because the world of this command ends with the command, received 'keep'",
    "Leave 'background' out, or start the process with a command that is not isolated and has no scope_token, under a policy that reuses worlds",
  );
}
