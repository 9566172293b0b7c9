import type { CommandRule } from "../../schemas/generated/types.ts";
import type { Where } from "./decision.ts";
import { prepare } from "./prepare.ts";
import { readShell } from "./read.ts";
import { indexRules } from "./rule-index.ts";
import { matchingPipes, matchingRules, type Rule, type RuleSet } from "./rule-set.ts";

/** Where a rule's own examples are read. */
const EXAMPLE_PLACE: Where = {
  project: "/projects/example",
  home: "/home/example",
  cwd: "/projects/example",
};

/** What a rule's own `match` and `not_match` say against it: a sentence for each that fails. */
export function failedExamples(rule: Rule, written: CommandRule): readonly string[] {
  if (typeof written === "string") return [];
  const missed = (written.match ?? []).filter((example) => !ruleMatches(rule, example));
  const caught = (written.not_match ?? []).filter((example) => ruleMatches(rule, example));
  return [
    ...missed.map((example) => `'${rule.pattern}' must match its own example '${example}', and does not`),
    ...caught.map((example) => `'${rule.pattern}' must not match its own example '${example}', and does`),
  ];
}

/** Does this one rule match some command of the example? */
function ruleMatches(rule: Rule, example: string): boolean {
  const read = readShell(example);
  const only: RuleSet = { ...indexRules([rule]), ...NOTHING_ELSE };
  const prepared = read.fragments.map((command) => prepare(command, EXAMPLE_PLACE));
  return (
    prepared.some((command) => command !== null && matchingRules(only, command).length > 0) ||
    read.pipelines.some((pipeline) => matchingPipes(only, pipeline, prepared).length > 0)
  );
}

const NOTHING_ELSE: Pick<RuleSet, "allowedInWords" | "sources"> = {
  allowedInWords: "",
  sources: {
    allowed: "",
    opaque: "",
    operators: "",
    require: "",
    write: "",
    denyWrite: "",
    denyRead: "",
    memory: "",
    timeout: "",
  },
};
