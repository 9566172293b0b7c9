/** Encodes SETUP, the frame that makes a world, and decodes init's answer. */
import { FRAME, TAG } from "../../schemas/generated/frames.ts";
import { denialWords } from "../plan/denials.ts";
import { operationWords } from "../plan/operations.ts";
import { decodeFields, decodeNumber, encodeFields, type Field } from "./frame-codec.ts";
import type { LaunchPlan, Ready } from "./launch.ts";
import { namespaceBits } from "./namespaces.ts";

/** Values of NESTED. */
const NESTED = { namespaces: 1, mounts: 2 } as const;

export function encodeSetup(plan: LaunchPlan): Buffer {
  const { mounts, denied, zones } = plan.plan;
  return encodeFields(FRAME.SETUP, 0, [
    [TAG.NAMESPACES, namespaceBits(plan.namespaces)],
    ...(plan.openness === "closed" ? [] : [[TAG.NESTED, NESTED[plan.openness]] as const]),
    [TAG.UID, plan.uid],
    [TAG.GID, plan.gid],
    ...networkField(plan.network),
    [TAG.SECCOMP, plan.filter],
    ...(plan.guard === undefined ? [] : [[TAG.SECCOMP_GUARD, plan.guard] as const]),
    ...(plan.commandFilter === undefined ? [] : [[TAG.COMMAND_FILTER, plan.commandFilter] as const]),
    ...(plan.recordFilter === undefined ? [] : [[TAG.RECORD_FILTER, plan.recordFilter] as const]),
    ...(plan.recorded === undefined ? [] : [[TAG.PROJECT, plan.recorded] as const]),
    ...(plan.recorded === undefined ? [] : plan.plan.opened.map((path): Field => [TAG.OPENED, path])),
    ...plan.plan.sockets.map((path): Field => [TAG.SOCKET, path]),
    ...plan.limits.map((limit): Field => [TAG.LIMIT, limit]),
    ...mounts.map((operation): Field => [TAG.MOUNT, operationWords(operation).join("\0")]),
    ...denied.map((name): Field => [TAG.DENY, denialWords(name).join("\0")]),
    ...zones.map(({ kind, path }): Field => [TAG.ZONE, `${kind}\0${path}`]),
    ...(plan.reports ? [[TAG.REPORTS, 1] as const] : []),
  ]);
}

function networkField(network: LaunchPlan["network"]): readonly Field[] {
  if (network === undefined) return [];
  return network === "host" ? [[TAG.HOST_NETWORK, 1]] : [[TAG.NETWORK, network]];
}

export function readReady(payload: Buffer): Ready {
  const list = decodeFields(payload);
  const fields = new Map(list);
  const number = (tag: number): number => {
    const bytes = fields.get(tag);
    return bytes === undefined ? 0 : decodeNumber(bytes);
  };
  const limits = list.filter(([tag]) => tag === TAG.LIMIT).map(([, text]) => text.toString("utf8"));
  const [achieved, unwatched] = [number(TAG.NAMESPACES), number(TAG.UNWATCHED)];
  const unrefreshed = number(TAG.UNREFRESHED);
  const gated = number(TAG.GATED) === 1;
  return { achieved, unwatched, unrefreshed, gated, pid: number(TAG.PID), limits };
}
