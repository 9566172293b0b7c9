/** Describes limits in force, and violations of limits. Pure. */
import type { WorldLimits, WorldViolation } from "../model/world.ts";
import type { CgroupBase } from "./base.ts";
import { CONTROLLERS, type Controller } from "./files.ts";
import { pidMaxOf, pidsOf, pidsOfCommand } from "./plan.ts";

/** The mechanisms in force in one world. */
export type Holding = {
  readonly controllers: readonly Controller[];
  /** `kernel.pid_max` of the world's pid namespace was set. */
  readonly pidMax: boolean;
  /** `RLIMIT_NPROC` counts only the world's user namespace. */
  readonly nproc: boolean;
};

/** Returns the isolation vector's text for `cgroup`. */
export function cgroupWord(base: CgroupBase): string {
  if (base.kind === "off") return `off: ${base.why}`;
  const missing = CONTROLLERS.filter((controller) => !base.controllers.includes(controller));
  return missing.length === 0 ? "on" : `degraded: no ${missing.join(", ")} controller`;
}

/** Returns the limits in force by name; a policy's limit without a mechanism is left out. */
export function heldLimits(limits: WorldLimits, holding: Holding): Readonly<Record<string, string>> {
  const { cpu, memory, disk } = limits;
  const pids = pidsWord(limits, holding);
  return {
    ...(cpu === undefined || !holding.controllers.includes("cpu") ? {} : { cpu: String(cpu) }),
    ...(memory === undefined || !holding.controllers.includes("memory") ? {} : { memory: String(memory) }),
    ...(pids === undefined ? {} : { pids }),
    disk: disk === undefined ? "a quarter of the machine's memory" : String(disk),
  };
}

function pidsWord(limits: WorldLimits, holding: Holding): string | undefined {
  if (holding.controllers.includes("pids")) return String(pidsOf(limits));
  if (holding.nproc) return `${pidsOf(limits)} (user namespace)`;
  if (holding.pidMax) return `${pidsOf(limits)} to ${pidMaxOf(limits)} (pid namespace)`;
  return undefined;
}

/** Counters of one command; undefined without a mechanism to count. */
export type Counted = {
  /** Processes killed by the kernel for lack of memory. */
  readonly oomKill: number | undefined;
  /** Forks refused by the command's pids.max. */
  readonly pidsMax: number | undefined;
  /** Maximum of processes found by init when signalling or ending the command. */
  readonly seen: number | undefined;
};

/** Reports the limits that a command hit, from counters only: the command's ending proves nothing. */
export function limitViolations(
  limits: WorldLimits,
  holding: Holding,
  counted: Counted,
): readonly WorldViolation[] {
  return [...memoryViolation(limits, counted), ...pidsViolation(limits, holding, counted)];
}

function memoryViolation({ memory }: WorldLimits, { oomKill }: Counted): readonly WorldViolation[] {
  if (oomKill === undefined || oomKill === 0) return [];
  const why =
    memory === undefined ? "the host ran out of memory" : `its world may use ${memory} bytes of memory`;
  return [limit("memory", `The kernel ended the command: ${why}`)];
}

function pidsViolation(limits: WorldLimits, holding: Holding, counted: Counted): readonly WorldViolation[] {
  const { pidsMax, seen } = counted;
  if (pidsMax !== undefined && pidsMax > 0) {
    const most = pidsOfCommand(limits);
    return [
      limit(
        "pids",
        `The kernel refused ${pidsMax} times to start a process: a command may have ${most} processes at once`,
      ),
    ];
  }
  if (holding.controllers.includes("pids") || !(holding.nproc || holding.pidMax)) return [];
  if (seen === undefined || seen < pidsOf(limits)) return [];
  return [
    limit(
      "pids",
      `The command had ${seen} processes when it was ended: its world may have ${pidsOf(limits)}`,
    ),
  ];
}

function limit(subject: string, message: string): WorldViolation {
  return { kind: "limit", subject, message };
}
