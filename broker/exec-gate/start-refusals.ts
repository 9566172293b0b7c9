/** Why a program does not start, in words that a model can act on. */
import type { DecisionRule } from "../../schemas/generated/types.ts";
import type { StartFinding } from "../policy/index.ts";
import { because, type Refusal, refusal, shortFragment } from "../model/refusal.ts";

export type RefusedStart = {
  readonly verdict: "deny" | "ask";
  readonly rule: DecisionRule | null;
  readonly error: Refusal;
};

export function deniedStart(finding: StartFinding): RefusedStart {
  const message = `Policy '${finding.policyId}' refuses to start this program${because(finding.rule)}`;
  const hint =
    "Do the task another way, or ask the operator to change the policy; the program under another name gets the same answer";
  return denied(finding.rule, message, hint);
}

/** A running command cannot be moved onto an overlay. */
export function needsOverlay(finding: StartFinding): RefusedStart {
  const { rule, policyId } = finding;
  const message = `Policy '${policyId}' starts this program only on an overlay, and this command runs without one${because(finding.rule)}. As a command of its own it is isolated, and its changes are held`;
  const hint = `Run '${shortFragment(rule)}' as a separate command: that command is isolated and its changes are held`;
  return denied(rule, message, hint);
}

/** The start was not approved; `error` says why. */
export function unapproved({ rule }: StartFinding, error: Refusal): RefusedStart {
  return { verdict: "ask", rule, error };
}

export function nobodyIsAsked(finding: StartFinding, why: string): Refusal {
  const message = `Policy '${finding.policyId}' wants a person to approve this program, but ${why}${because(finding.rule)}`;
  return refusal(
    "policy_denied",
    message,
    "Run the program as a separate command, or do the task another way",
  );
}

export function policyChanged(finding: StartFinding): RefusedStart {
  const message = `The policy changed while a person was asked${because(finding.rule)}`;
  const hint = "Run the command again: the new policy decides about it";
  return { verdict: "ask", rule: finding.rule, error: refusal("policy_changed", message, hint) };
}

export function noPolicy(): RefusedStart {
  const message = "No policy loads, so no program can start that a rule might cover";
  return denied(null, message, "Ask the operator to run 'substrate policy validate'");
}

export function undecided(): RefusedStart {
  const message = "The broker failed to decide about this program; the broker's log says why";
  const hint = "Do the task another way, and tell the operator";
  return { verdict: "deny", rule: null, error: refusal("internal", message, hint) };
}

function denied(rule: DecisionRule | null, message: string, hint: string): RefusedStart {
  return { verdict: "deny", rule, error: refusal("policy_denied", message, hint) };
}
