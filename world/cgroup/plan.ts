/** Translates a spec's limits for each mechanism. Pure. */
import type { WorldLimits } from "../model/world.ts";
import type { Controller } from "./files.ts";

/** Default: enough for a build with a thousand processes, too few for a fork bomb to take the host. */
export const DEFAULT_PIDS = 4096;

/** Difference between `kernel.pid_max` and the usable number: RESERVED_PIDS (kernel/pid.c), and init's own processes. */
const PID_MAX_ROOM = 300 + 64;

/**
 * PID 1, its outer process, the forker, helpers and the leaders of commands count in the user namespace too. Six
 * were counted in an idle world; with too little room a bomb stops below `pids`, and nothing says that it met it.
 */
const NPROC_ROOM = 16;

/** Share of pids.max that one command leaves to the other commands of its world. */
const COMMAND_ROOM = { part: 1 / 8, most: 64 };

const MAX_DESCRIPTORS = 65_536;

/** Period of cpu.max, and the kernel's minimum quota (kernel/sched/core.c), in microseconds. */
const CPU_PERIOD = 100_000;
const LEAST_QUOTA = 1000;

/** Mechanisms available besides cgroups, from the kernel's version and the world's namespaces. */
export type LimitFacts = {
  /** Linux 6.14: `kernel.pid_max` belongs to the pid namespace. */
  readonly pidMaxIsPerNamespace: boolean;
  /** The world has a user namespace with its own process count (Linux 5.14). */
  readonly countsPerUserNamespace: boolean;
};

export function pidsOf(limits: WorldLimits): number {
  return limits.pids ?? DEFAULT_PIDS;
}

export function pidsOfCommand(limits: WorldLimits): number {
  const pids = pidsOf(limits);
  return Math.max(1, pids - Math.min(COMMAND_ROOM.most, Math.floor(pids * COMMAND_ROOM.part)));
}

export function pidMaxOf(limits: WorldLimits): number {
  return pidsOf(limits) + PID_MAX_ROOM;
}

/** Returns the files to write in the cgroup of all commands, in order; `optional`: missing in some kernels. */
export function groupFiles(
  limits: WorldLimits,
  controllers: readonly Controller[],
): readonly { readonly file: string; readonly value: string; readonly optional?: true }[] {
  const { cpu, memory } = limits;
  const quota = cpu === undefined ? 0 : Math.max(LEAST_QUOTA, Math.round(cpu * CPU_PERIOD));
  return [
    ...(memory === undefined || !controllers.includes("memory")
      ? []
      : [
          { file: "memory.max", value: String(memory) },
          { file: "memory.swap.max", value: "0", optional: true as const },
        ]),
    ...(cpu === undefined || !controllers.includes("cpu")
      ? []
      : [{ file: "cpu.max", value: `${quota} ${CPU_PERIOD}` }]),
    ...(controllers.includes("pids") ? [{ file: "pids.max", value: String(pidsOf(limits)) }] : []),
  ];
}

/** Returns the LIMIT fields of SETUP, each `NAME=value`. */
export function initLimits(
  limits: WorldLimits,
  facts: LimitFacts,
  group: { readonly name: string; readonly controllers: readonly Controller[] } | undefined,
): readonly string[] {
  const controllers = group?.controllers ?? [];
  return [
    ...(group === undefined ? [] : [`cgroup=${group.name}`]),
    ...(controllers.includes("memory") ? ["memory=1"] : []),
    ...(controllers.includes("pids") ? [`pids=${pidsOfCommand(limits)}`] : []),
    ...(facts.pidMaxIsPerNamespace ? [`pid_max=${pidMaxOf(limits)}`] : []),
    ...(facts.countsPerUserNamespace ? [`nproc=${pidsOf(limits) + NPROC_ROOM}`] : []),
    `nofile=${MAX_DESCRIPTORS}`,
  ];
}
