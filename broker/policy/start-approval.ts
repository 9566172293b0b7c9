/** `approval.require` at the start of a program. Pure. */
import type { ProgramStart } from "../../world/backend.ts";
import type { CompiledPolicy } from "./decision.ts";
import type { StartFinding } from "./decide-start.ts";
import { asksForAll, keyRule } from "./findings.ts";
import type { StartReading } from "./start-readings.ts";
import { rulesFor, wordsOf } from "./start-rules.ts";

/** What `approval.auto_approve` does not cover asks, unless the line that starts it speaks for it: that the gate knows. */
export function notApproved(
  policy: CompiledPolicy,
  { cut, files: [file] }: ProgramStart,
  asked: readonly StartReading[],
): StartFinding[] {
  if (!asksForAll(policy)) return [];
  const isApproved = ({ commands: [command], where }: StartReading): boolean =>
    rulesFor(policy, command, where).some(({ list }) => list === "approval.auto_approve");
  if (!cut && asked.some((reading) => reading.isPath && isApproved(reading))) return [];
  const fragment = wordsOf(file.argv);
  const rule = keyRule(policy, "require", "require: true", fragment, NOT_NAMED);
  return [{ verdict: cut ? "deny" : "ask", rule, policyId: policy.id, command: null }];
}

const NOT_NAMED =
  "approval.require is true, and neither approval.auto_approve nor the command line that starts this program names it";
