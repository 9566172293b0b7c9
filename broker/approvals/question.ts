import type {
  Approval,
  ApprovalDecision,
  ApprovalPreview,
  DecisionRule,
  PolicyMode,
} from "../../schemas/generated/types.ts";
import type { Refusal } from "../model/refusal.ts";

/** An answer that lets something happen. */
export type Grant = Exclude<ApprovalDecision, "deny">;

/** A policy that was in force when a question was asked: `source` is its file name, `hash` what it said. */
export type BoundPolicy = { readonly source: string; readonly hash: string };

/** Written beside its file, and in force once it is kept; one of the two is called, once. */
export type WrittenAlways = { readonly keep: () => Refusal | undefined; readonly discard: () => void };

/** What a person is asked. Made anew for each look at it, from what is so now. */
export type Question = {
  readonly kind: Approval["kind"];
  /** Hash of all that an answer is bound to: another key is another question. */
  readonly key: string;
  /** The span of the call that asks. */
  readonly span: string;
  /** Its `x-request-id`; absent where no execute call waits. */
  readonly call?: string;
  readonly agent: string;
  /** Whether its caller chose that name: then it is one of as many as the caller likes. */
  readonly isLabel: boolean;
  readonly session: string;
  readonly project: string;
  readonly cwd: string;
  readonly policyId: string;
  readonly policyHash: string;
  /** An answer ends when one of these is read with other words in it. */
  readonly policies: readonly BoundPolicy[];
  readonly profile: string | null;
  readonly mode: PolicyMode;
  readonly rule: DecisionRule | null;
  /** The same with credentials replaced, as the trace has it. */
  readonly recordedRule: DecisionRule | null;
  readonly reason: string | null;
  /** Shown to the person exactly as it is; never recorded. */
  readonly subject: Approval["subject"];
  /** The same in one text for the record, credentials replaced. */
  readonly recorded: string;
  readonly offers: readonly Grant[];
  /** What a person should know before answering, such as why an answer is not offered. */
  readonly notes: readonly string[];
  /** How long it waits for an answer, and how long an unused `once` stays good. */
  readonly timeoutMs: number;
  /** Why it need not be answered any more: a policy changed. Looked at before an answer counts. */
  readonly outdated: () => Refusal | undefined;
  /** The approval in `approvals.yaml` that covers it; absent where `always` is not offered. */
  readonly standing?: () => string | undefined;
  /** Writes it for `approvals.yaml` under this id; absent where `always` is not offered. */
  readonly writeAlways?: (id: string) => WrittenAlways | Refusal;
  /** Tries it out without effect; `layers` is a span on record, whose name what is kept meanwhile bears. */
  readonly preview?: (layers: string) => Promise<ApprovalPreview>;
  /** Whether it is tried out before the person is asked. */
  readonly previewFirst: boolean;
};

/** A person said yes, now or earlier. */
export type Granted = { readonly approval: string; readonly how: Grant };
