/** Network scopes that are never granted, or need no grant. Pure: no name is resolved before a grant. */
import { HOST_INTERNAL, isLocalhost } from "../network/names/names.ts";
import { internalPart } from "../network/names/internal-addresses.ts";
import { isWithin, rangeText, readRange } from "../network/names/ranges.ts";
import type { NetRules } from "../network/rules.ts";
import { quoted, type Refusal, refusal } from "../model/refusal.ts";
import type { NetScope } from "../model/scope.ts";
import { hostText } from "./net-scope.ts";

/** Why a scope can never be granted; undefined when a person may be asked. `rules`: of the policies, without tokens. */
export function netNeverGranted(scope: NetScope, rules: NetRules): Refusal | undefined {
  const why = scope.opens.kind === "name" ? closedName(scope, rules) : closedRange(scope, rules);
  if (why === undefined) return undefined;
  return refusal(
    "scope_denied",
    `Cannot grant ${quoted(scope.asked)}: ${why}`,
    "No scope can be granted for it: ask for a host outside, or ask the operator to change net.allowed",
  );
}

/** Whether the policies already allow the scope. */
export function isNetGiven({ opens, port }: NetScope, rules: NetRules): boolean {
  if (opens.kind === "name") return rules.connection(opens.name, port).allowed;
  return rules.ranges.some(({ cidr, ports }) => {
    const allowed = readRange(cidr);
    return allowed !== null && isWithin(opens.range, allowed) && ports.includes(port);
  });
}

function closedName(scope: NetScope, rules: NetRules): string | undefined {
  const name = hostText(scope);
  if (isLocalhost(name)) return "a world has its own localhost, which needs no scope";
  if (name !== HOST_INTERNAL || isNetGiven(scope, rules)) return undefined;
  return `only an entry of net.allowed can open the host's localhost, such as '${HOST_INTERNAL}:${scope.port}'`;
}

/** The gateway would refuse internal addresses despite a grant: refuse before a person is asked. */
function closedRange({ opens, port }: NetScope, rules: NetRules): string | undefined {
  if (opens.kind === "name" || rules.coversRange(opens.range, port)) return undefined;
  const internal = internalPart(opens.range);
  if (internal === null) return undefined;
  const what =
    opens.range.prefix === 32 ? `is internal (${internal})` : `has internal addresses (${internal})`;
  return `'${rangeText(opens.range)}' ${what}, and no CIDR entry of net.allowed covers it`;
}
