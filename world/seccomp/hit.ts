/** Describes notified system calls for people. */
import { getSystemErrorName } from "node:util";
import type { WorldViolation } from "../model/world.ts";
import { identifyCall } from "./numbers.ts";
import { type ArgumentTest, DENIED, type SeccompRule } from "./table.ts";

/** A call refused by default, as reported by `substrate-init` in log mode. */
export type Hit = {
  readonly number: number;
  /** AUDIT_ARCH_* of the interface used. */
  readonly audit: number;
  /** The six raw arguments of the latest such call. */
  readonly arguments: readonly bigint[];
  /** Number of such calls by the command so far. */
  readonly count: number;
  /** 0: allowed; otherwise the errno returned. */
  readonly refused: number;
};

/** Describes a hit as a violation: the call, its outcome, and the reason from the table. */
export function hitViolation(hit: Hit): WorldViolation {
  const identity = identifyCall(hit.number, hit.audit);
  if (identity.kind === "foreign") {
    const words = `system call ${identity.number} of the ${identity.interface} interface`;
    return violation(`${identity.interface}:${identity.number}`, `The ${words}`, hit, FOREIGN);
  }
  const rule = DENIED.find((row) => row.call === identity.call && applies(row.when, hit));
  return violation(identity.call, `The system call ${identity.call}${deciding(rule, hit)}`, hit, rule);
}

/** A row for whole interfaces, worded like the other rows. */
const FOREIGN: Pick<SeccompRule, "reason" | "inLogMode"> = {
  reason: "the interface uses other call numbers than the filter checks",
  inLogMode: {
    reason: "the filter could not recognise calls that reach files or the network",
    told: true,
  },
};

function violation(
  subject: string,
  what: string,
  hit: Hit,
  rule: Pick<SeccompRule, "reason" | "inLogMode"> | undefined,
): WorldViolation {
  const times = hit.count === 1 ? "" : `, ${hit.count} times so far`;
  const byDefault = rule?.reason ?? "the reason is unknown";
  const outcome =
    hit.refused === 0
      ? `was allowed because the policy's world.seccomp is log${times}. By default the call is refused: ${byDefault}`
      : `was refused with ${getSystemErrorName(-hit.refused)} although the policy's world.seccomp is log${times}: ${rule?.inLogMode?.reason ?? byDefault}`;
  return { kind: "system_call", subject, message: `${what} ${outcome}` };
}

/** Returns ` (argument 1: 0x26)` and so on: the arguments tested by the rule, counted from 1. */
function deciding(rule: SeccompRule | undefined, hit: Hit): string {
  const places = [...new Set((rule?.when ?? []).map(({ argument }) => argument))];
  if (places.length === 0) return "";
  const words = places.map((place) => `argument ${place + 1}: 0x${lowHalf(hit, place).toString(16)}`);
  return ` (${words.join(", ")})`;
}

function applies(tests: readonly ArgumentTest[] | undefined, hit: Hit): boolean {
  return (tests ?? []).every((test) => {
    const value = lowHalf(hit, test.argument);
    if ("anyOf" in test) return (value & test.anyOf) !== 0;
    return "isIn" in test ? test.isIn.includes(value) : !test.notIn.includes(value);
  });
}

/** Returns the part of an argument that the kernel reads. */
export function lowHalf(hit: Hit, argument: number): number {
  return Number((hit.arguments[argument] ?? 0n) & 0xffff_ffffn);
}
