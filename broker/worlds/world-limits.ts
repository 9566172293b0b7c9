/** `world.limits` of a policy as numbers; the schema has checked how they are spelled. */
import type { PolicyDocument } from "../../schemas/generated/types.ts";
import type { WorldLimits } from "../../world/backend.ts";

type Written = NonNullable<NonNullable<PolicyDocument["world"]>["limits"]>;

/** Powers of 1000 and of 1024, as Kubernetes and systemd spell them. */
const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  K: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
};

export function worldLimits(written: Written | undefined): WorldLimits {
  if (written === undefined) return {};
  const { cpu, memory, pids, disk } = written;
  return {
    ...(cpu === undefined ? {} : { cpu: cpus(cpu) }),
    ...(memory === undefined ? {} : { memory: bytes(memory) }),
    ...(pids === undefined ? {} : { pids }),
    ...(disk === undefined ? {} : { disk: bytes(disk) }),
  };
}

/** Of each limit the lower one. */
export function lowerLimits(one: WorldLimits, other: WorldLimits): WorldLimits {
  const lower: Partial<Record<keyof WorldLimits, number>> = { ...one };
  for (const [name, value] of Object.entries(other) as [keyof WorldLimits, number][])
    lower[name] = Math.min(lower[name] ?? value, value);
  return lower;
}

function cpus(text: string): number {
  return text.endsWith("m") ? Number(text.slice(0, -1)) / 1000 : Number(text);
}

function bytes(text: string): number {
  const [, number = "", unit = ""] = /^([0-9.]+)([A-Za-z]*)$/.exec(text) ?? [];
  const factor = UNITS[unit];
  if (factor === undefined) throw new Error(`The schema let the size '${text}' through`);
  return Math.round(Number(number) * factor);
}
