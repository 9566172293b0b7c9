import { pathPatterns } from "../policy/files/file-scope.ts";
import { HELD_WHERE_ISOLATED, isHeldRow } from "../policy/files/held-names.ts";
import { silentPolicy } from "../model/effective.ts";
import type { Job } from "../model/job.ts";
import { because, type Refusal, refusal } from "../model/refusal.ts";

/** Allow lists, each with the command that extends it. No command lifts a deny list. */
const LIFTED_BY: ReadonlyMap<string, string> = new Map([
  ["fs.write", "write PATH"],
  ["fs.read", "read PATH"],
  ["net.allowed", "net NAME"],
  ["commands.allowed", "command PATTERN"],
]);

/**
 * Refuses a command that the policy stops and that no answer of a person lifts; undefined when the command may run or be asked
 * for.
 */
export function refuseByDecision(job: Job): Refusal | undefined {
  const { verdict, rule, policyId } = job.decision;
  const facts = { policy_id: policyId, rule, exit: 126 };
  if (verdict === "deny") {
    if (job.isFileCall === true) return deniedFile(job);
    const how = LIFTED_BY.get(rule?.list ?? "");
    const change = how === undefined ? "" : ` ('substrate policy allow ${how}')`;
    const held = isHeldElsewhere(job) ? `. Or let the operator isolate it: ${HELD_WHERE_ISOLATED}` : "";
    const hint = `Do the task another way, or ask the operator to change the policy${change}; other spellings of the command get the same answer${held}`;
    return refusal(
      "policy_denied",
      `Policy '${policyId}' denies this command${because(job.decision.rule)}`,
      hint,
      facts,
    );
  }
  if (verdict === "ask" && job.replays !== undefined) {
    return refusal(
      "policy_denied",
      `Policy '${policyId}' wants a person to approve this command${because(job.decision.rule)}; a replay cannot ask`,
      "Run the command itself with POST /v1/execute, or replay it under a policy that allows it",
      facts,
    );
  }
  const silent = job.request.require_approval === true ? silentPolicy(job.effective) : undefined;
  if (silent === undefined) return undefined;
  return refusal(
    "policy_denied",
    `Cannot ask a person for approval: approval.interactive is false in policy '${silent}'`,
    "Leave 'require_approval' out, or ask the operator to change the policy",
    { ...facts, policy_id: silent, rule: null },
  );
}

function deniedFile({ decision: { rule, policyId } }: Job): Refusal {
  const change = LIFTED_BY.get(rule?.list ?? "");
  const ways = [
    "Work without it",
    ...(rule?.pattern.includes(".git") === true ? ["let a git command change git's own files"] : []),
    ...(change === undefined
      ? [`a person can do it outside of Substrate, or change ${rule?.list ?? "the policy"}`]
      : [`ask for a scope (POST /v1/request_scopes)`, `a person can run 'substrate policy allow ${change}'`]),
  ];
  return refusal("policy_denied", `Policy '${policyId}' denies this${because(rule)}`, ways.join("; "), {
    policy_id: policyId,
    rule,
    exit: 126,
  });
}

/** Whether the denying row leaves isolated commands alone. */
function isHeldElsewhere({ decision: { rule }, place: { project } }: Job): boolean {
  if (rule?.list !== "fs.deny_write") return false;
  return pathPatterns([rule.pattern], project, "/").every((row) => isHeldRow(row, project));
}
