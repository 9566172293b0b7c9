import type {
  Approval,
  ApprovalDecision,
  ApprovalPreview,
  DecisionRule,
  PolicyMode,
} from "../../schemas/generated/types.ts";
import type { Refusal } from "../model/refusal.ts";

/** An answer that permits the action. */
export type Grant = Exclude<ApprovalDecision, "deny">;

/** A policy in force when a question was asked: `source` is its file name, `hash` its content. */
export type BoundPolicy = { readonly source: string; readonly hash: string };

/** An approval in a temporary file; exactly one of the two is called: `keep` puts it in force. */
export type WrittenAlways = { readonly keep: () => Refusal | undefined; readonly discard: () => void };

/** A question for a person, rebuilt from the current state at each use. */
export type Question = {
  readonly kind: Approval["kind"];
  /** Hash of everything an answer is bound to; another key means another question. */
  readonly key: string;
  /** The span of the asking call. */
  readonly span: string;
  /** The call's `x-request-id`; absent when no execute call waits. */
  readonly call?: string;
  readonly agent: string;
  /** Whether the caller chose the agent's name: a caller can use any number of labels. */
  readonly isLabel: boolean;
  readonly session: string;
  readonly project: string;
  readonly cwd: string;
  readonly policyId: string;
  readonly policyHash: string;
  /** A changed version of any of these policies ends the answer. */
  readonly policies: readonly BoundPolicy[];
  readonly profile: string | null;
  readonly mode: PolicyMode;
  readonly rule: DecisionRule | null;
  /** The rule with credentials redacted, as in the trace. */
  readonly recordedRule: DecisionRule | null;
  readonly reason: string | null;
  /** Shown to the person unredacted; never recorded. */
  readonly subject: Approval["subject"];
  /** The subject as one redacted text for the record. */
  readonly recorded: string;
  readonly offers: readonly Grant[];
  /** Facts to know before answering, such as why an answer is not offered. */
  readonly notes: readonly string[];
  /** How long the question waits, and how long an unused `once` stays valid. */
  readonly timeoutMs: number;
  /** Refuses an outdated question after a policy change. Called before an answer counts. */
  readonly outdated: () => Refusal | undefined;
  /** Finds a matching approval in `approvals.yaml`; absent where `always` is not offered. */
  readonly standing?: () => string | undefined;
  /** Writes an entry for `approvals.yaml` with this id; absent where `always` is not offered. */
  readonly writeAlways?: (id: string) => WrittenAlways | Refusal;
  /** Runs the preview without effect; `layers` is a recorded span's id, used as the name of the overlay's folder. */
  readonly preview?: (layers: string) => Promise<ApprovalPreview>;
  /** Whether the preview runs before the person is asked. */
  readonly previewFirst: boolean;
};

/** A person's yes, given now or earlier. */
export type Granted = { readonly approval: string; readonly how: Grant };
