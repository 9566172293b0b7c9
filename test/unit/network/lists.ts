/** Rules from entries as they are written; line 10 of `p.yaml` has the first. */
import { type PolicyNet, readNet } from "../../../broker/network/names/entries.ts";
import { type ExpandedPresets, type NetRules, netRules } from "../../../broker/network/rules.ts";

const NO_PRESETS: ExpandedPresets = new Map();

export function listOf(allowed: readonly string[], file = "p.yaml"): PolicyNet {
  const at = (path: readonly (string | number)[]) => ({ file, line: 10 + Number(path[2] ?? -1), column: 1 });
  const { net, problems } = readNet({ id: "p", name: "P", net: { allowed: [...allowed] } }, { at });
  if (problems[0] !== undefined) throw new Error(problems[0].message);
  return net;
}

export function rulesOf(allowed: readonly string[], presets = NO_PRESETS): NetRules {
  return netRules([{ net: listOf(allowed), presets }]);
}

export function both(one: readonly string[], other: readonly string[]): NetRules {
  return netRules([
    { net: listOf(one, "one.yaml"), presets: NO_PRESETS },
    { net: listOf(other, "other.yaml"), presets: NO_PRESETS },
  ]);
}
