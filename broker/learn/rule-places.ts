import type { DecisionRule, PolicyDocument } from "../../schemas/generated/types.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import type { JudgedCommand } from "./command-fates.ts";

/** Rules were matched in a policy that was made for it: they get the lines that they have in the file. */
export function withSources(
  commands: readonly JudgedCommand[],
  { document, at }: CompiledPolicy,
): readonly JudgedCommand[] {
  const placed = (rule: DecisionRule): DecisionRule => {
    const { file, line } = at(ruleInDocument(document, rule));
    return { ...rule, source: `${file}:${line}` };
  };
  return commands.map((one) =>
    "rule" in one.fate && one.fate.rule !== null
      ? { ...one, fate: { ...one.fate, rule: placed(one.fate.rule) } }
      : one,
  );
}

/** Where a rule stands: an item of its list, or a key that decides without a pattern. */
function ruleInDocument(
  document: PolicyDocument,
  { list, pattern }: DecisionRule,
): readonly (string | number)[] {
  const path = list.split(".");
  const items = path.reduce<unknown>(
    (value, key) =>
      typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined,
    document,
  );
  if (!Array.isArray(items)) return path;
  const index = items.findIndex((item: unknown) =>
    typeof item === "object" && item !== null && "pattern" in item
      ? item.pattern === pattern
      : item === pattern,
  );
  return index === -1 ? path : [...path, index];
}
