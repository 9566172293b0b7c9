/** Explains a verdict to a reader who has never seen a policy: the one wording for the CLI and for `format: text`. */
import type { CheckReply } from "../../schemas/generated/types.ts";

/** How parts of the lines are shown; a terminal escapes and paints. */
export type LineStyle = {
  readonly verdict: (verdict: string) => string;
  readonly fragment: (fragment: string) => string;
  /** Text of commands and policies. */
  readonly text: (text: string) => string;
};

const PLAIN: LineStyle = { verdict: String, fragment: String, text: String };

type Verdict = CheckReply["decision"]["verdict"];

type Words = { readonly means: string; readonly next: string | null };

/** Lines about a verdict on a command, its rule and the decisions left to the run. */
export function checkLines(reply: CheckReply, style: LineStyle = PLAIN): string[] {
  return linesOf(reply, style, WORDS[reply.decision.verdict], "command");
}

/** Lines about a verdict on the files of an agent's own tool. */
export function checkFilesLines(reply: CheckReply): string[] {
  const words = reply.decision.verdict === "allow" ? FILES_ALLOWED : FILES_DENIED;
  return linesOf(reply, PLAIN, words, "file");
}

const FILES_ALLOWED: Words = { means: "the policy lets the tool open the files", next: null };
const FILES_DENIED: Words = {
  means: "the tool may not open this file",
  next: "do the task without this file, or ask the operator to change the policy; other names and commands reach it as little",
};

function linesOf(
  reply: CheckReply,
  { verdict, fragment, text }: LineStyle,
  words: Words,
  about: string,
): string[] {
  const { decision, policy_id: policy, undecided = [], approved } = reply;
  const { rule } = decision;
  const { means, next } = approved === undefined ? words : { means: approvedBy(approved), next: null };
  const lines = [`${verdict(decision.verdict)}  policy ${policy} (${decision.mode})`, `  means    ${means}`];
  if (rule === null) lines.push(`  because  no rule matches this ${about}`);
  else {
    const how = isPattern(rule.list) ? "matches" : "against";
    lines.push(`  because  ${fragment(rule.fragment)}`);
    lines.push(`  ${how}  ${text(rule.pattern)}   in ${rule.list}, ${rule.source}`);
    if (rule.reason !== undefined) lines.push(`  reason   ${text(rule.reason)}`);
    if (next !== null) lines.push(`  next     ${next}`);
  }
  return [...lines, ...undecided.map((sentence) => `  at run   ${text(sentence)}`)];
}

function approvedBy(approval: string): string {
  return `the command runs: a person approved it before (${approval})`;
}

/** Whether a list's entries are patterns of commands; other lists are settings for any command. */
function isPattern(list: string): boolean {
  return /^commands\.(denied|ask|isolated|warn|allowed)$|^approval\.auto_approve$/.test(list);
}

const OTHER_WAY =
  "do the task another way, or ask the operator to change that line; other spellings of the command get the same answer";

/** Effect of each verdict, and the next step where a rule gave it. */
const WORDS: Readonly<Record<Verdict, Words>> = {
  allow: { means: "the command runs", next: null },
  isolate: {
    means: "the command runs on a copy of the project; its changes are held until they are applied",
    next: "`substrate diff` shows the changes after it has run",
  },
  ask: {
    means: "a person must approve the command before any of it runs",
    next: "`substrate exec --wait` holds it until then; `substrate approvals` lists what waits for approval",
  },
  deny: { means: "no part of the command runs", next: OTHER_WAY },
  would_isolate: {
    means: "the command runs, because this policy only observes; if it enforced, the changes would be held",
    next: null,
  },
  would_ask: {
    means:
      "the command runs, because this policy only observes; if it enforced, a person would have to approve the command",
    next: null,
  },
  would_deny: {
    means:
      "the command runs, because this policy only observes; if it enforced, no part of the command would run",
    next: null,
  },
};
