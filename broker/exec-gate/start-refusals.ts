/** Why a program does not start, in words that a model can act on. */
import type { DecisionRule } from "../../schemas/generated/types.ts";
import type { StartFinding } from "../policy/index.ts";
import { type Refusal, refusal } from "../model/refusal.ts";

export type RefusedStart = {
  readonly verdict: "deny" | "ask";
  readonly rule: DecisionRule | null;
  readonly error: Refusal;
};

export function deniedStart(finding: StartFinding): RefusedStart {
  const message = `Policy '${finding.policyId}' denies that this program starts${because(finding)}`;
  const hint =
    "Do the task another way, or ask the operator to change the policy; the same program under another name gives the same answer";
  return denied(finding.rule, message, hint);
}

/** A running command cannot be moved onto an overlay. */
export function needsOverlay(finding: StartFinding): RefusedStart {
  const { rule, policyId } = finding;
  const message = `Policy '${policyId}' lets this program start on an overlay alone, and the command that starts it has none${because(finding)}`;
  const hint = `Run '${rule.fragment}' as a command of its own: it is isolated then, and its changes are held`;
  return denied(rule, message, hint);
}

/** The start was not approved; `error` says why. */
export function unapproved({ rule }: StartFinding, error: Refusal): RefusedStart {
  return { verdict: "ask", rule, error };
}

export function nobodyIsAsked(finding: StartFinding, why: string): Refusal {
  const message = `Policy '${finding.policyId}' wants a person to approve that this program starts, and ${why}${because(finding)}`;
  return refusal(
    "policy_denied",
    message,
    "Run the program as a command of its own, or do the task another way",
  );
}

export function policyChanged(finding: StartFinding): RefusedStart {
  const message = `The policy changed while a person was asked${because(finding)}`;
  const hint = "Run the command again: the policy of now decides anew";
  return { verdict: "ask", rule: finding.rule, error: refusal("policy_changed", message, hint) };
}

export function noPolicy(): RefusedStart {
  const message = "No policy loads, so no program starts that a rule may be about";
  return denied(null, message, "Ask the operator to run 'substrate policy validate'");
}

export function undecided(): RefusedStart {
  const message = "Whether this program may start could not be decided: the broker's log says why";
  const hint = "Do the task another way, and tell the operator";
  return { verdict: "deny", rule: null, error: refusal("internal", message, hint) };
}

function denied(rule: DecisionRule | null, message: string, hint: string): RefusedStart {
  return { verdict: "deny", rule, error: refusal("policy_denied", message, hint) };
}

function because({ rule }: StartFinding): string {
  const reason = rule.reason === undefined ? "" : `: ${rule.reason}`;
  return `: '${rule.fragment}' matches '${rule.pattern}' in ${rule.list} (${rule.source})${reason}`;
}
