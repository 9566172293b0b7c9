/** What a policy's rules are compared with when a program starts. Pure. */
import type { SimpleCommand } from "./command.ts";
import type { CompiledPolicy, Where } from "./decision.ts";
import { asksForAll } from "./findings.ts";
import { prepare } from "./prepare.ts";
import { matchingRules, type Rule } from "./rule-set.ts";

/** In their order. */
export function rulesFor(policy: CompiledPolicy, command: SimpleCommand, where: Where): readonly Rule[] {
  const prepared = prepare(command, where);
  return prepared === null
    ? []
    : matchingRules(policy.rules, prepared, asksForAll(policy)).sort((one, other) => one.order - other.order);
}

/** As a fragment shows them. */
export function wordsOf(argv: readonly string[]): string {
  return argv.join(" ");
}
