/** Launches a world with limits: makes the cgroup first, and reports the limits in force afterwards. */
import { readFileSync, writeFileSync } from "node:fs";
import { release } from "node:os";
import type { WorldLimits } from "../model/world.ts";
import { WorldUnavailable } from "../model/unavailable.ts";
import type { CgroupBase } from "../cgroup/base.ts";
import { initLimits, type LimitFacts, pidMaxOf } from "../cgroup/plan.ts";
import { isKernelAtLeast } from "../cgroup/where.ts";
import type { Holding } from "../cgroup/words.ts";
import type { WorldGroups } from "../cgroup/world-group.ts";
import type { Launched, LaunchPlan } from "./launch.ts";

/** The host's switch; in a namespace with its own pid_max (Linux 6.14) the same path is a separate switch. */
const PID_MAX = "/proc/sys/kernel/pid_max";

export type LimitedLaunch = (limited: Pick<LaunchPlan, "limits" | "cgroup">) => Promise<Launched>;

export type Limited = Launched & { readonly holding: Holding; readonly cleanUp: () => void };

/** Throws the errors of `launch`, and {@link WorldUnavailable}; the world's cgroup is removed then. */
export async function launchLimited(
  groups: WorldGroups,
  base: CgroupBase,
  limits: WorldLimits,
  userNamespace: boolean,
  launch: LimitedLaunch,
): Promise<Limited> {
  const facts = limitFacts(userNamespace);
  const group = groups.make(limits, base);
  const before = hostPidMax();
  const isChanged = (): boolean =>
    before !== undefined && hostPidMax() !== before && hostPidMax() === `${pidMaxOf(limits)}\n`;
  try {
    const given = { limits: initLimits(limits, facts, group), cgroup: group?.fd };
    const launched = await launch(given);
    if (before !== undefined && isChanged()) throw hostChanged(launched, before);
    const holding = {
      controllers: group?.controllers ?? [],
      pidMax: launched.limits.includes(`pid_max=${pidMaxOf(limits)}`),
      nproc: facts.countsPerUserNamespace,
    };
    return { ...launched, holding, cleanUp: () => group?.remove() };
  } catch (error) {
    group?.remove();
    throw error;
  } finally {
    group?.handedOver();
  }
}

function limitFacts(userNamespace: boolean): LimitFacts {
  return {
    pidMaxIsPerNamespace: isKernelAtLeast(release(), 6, 14),
    countsPerUserNamespace: userNamespace && isKernelAtLeast(release(), 5, 14),
  };
}

function hostPidMax(): string | undefined {
  try {
    return readFileSync(PID_MAX, "utf8");
  } catch {
    // No procfs switch to compare, ignoring: then none was written either.
    return undefined;
  }
}

/** Restores pid_max and ends the world: this kernel reports 6.14 but shares one pid_max among all namespaces. */
function hostChanged(launched: Launched, before: string): WorldUnavailable {
  launched.channel.destroy();
  launched.holder.kill();
  writeFileSync(PID_MAX, before);
  return new WorldUnavailable(
    `A limit of processes inside a world became the host's own ${PID_MAX}: it is ${before.trim()} again`,
    "This kernel says 6.14 or newer and does not keep pid_max per namespace: report it with `uname -r`",
  );
}
