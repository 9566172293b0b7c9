/** Formats a question for people. All text comes from an agent, so all text is escaped. */
import type { Approval, ApprovalPreview, ApprovalSubject } from "../../../schemas/generated/types.ts";
import {
  commandText,
  MOST_LISTED,
  MOST_OF_COMMAND,
  MOST_OF_TEXT as MOST,
} from "../../../broker/approvals/shown.ts";
import type { Colours } from "./colours.ts";
import { harmlessExcerpt, harmlessLine } from "../terminal/terminal.ts";
import { lookAlikeWords } from "./look-alikes.ts";

/** Formats a question, without the id. */
export function approvalLines(colours: Colours, approval: Approval): readonly string[] {
  const { subject, rule, preview } = approval;
  const rows: readonly (readonly [string, string])[] = [
    ...subjectRows(colours, subject),
    ["agent", `${harmlessLine(approval.agent_id)} in ${harmlessExcerpt(approval.cwd, MOST)}`],
    ...(rule === null
      ? []
      : ([
          ["because", harmlessExcerpt(rule.fragment, MOST)],
          [
            "matches",
            `${harmlessExcerpt(rule.pattern, MOST)}   in ${rule.list}, ${harmlessLine(rule.source)}`,
          ],
        ] as const)),
    ...(approval.reason === null ? [] : [["reason", harmlessExcerpt(approval.reason, MOST)] as const]),
    ...approval.notes
      .slice(0, MOST_LISTED)
      .map((note) => ["note", colours.yellow(harmlessExcerpt(note, MOST))] as const),
    ...(preview.state === "none" ? [] : [["preview", previewWords(preview)] as const]),
  ];
  return rows.map(([name, value]) => `  ${name.padEnd(8)} ${value}`);
}

function subjectRows(colours: Colours, subject: ApprovalSubject): readonly (readonly [string, string])[] {
  const { shell, env = [], stdin_bytes: input, stdin_text: typed, stdin, verdict, world, scopes } = subject;
  const text = commandText(subject);
  const alike = lookAlikeWords([text ?? "", typed ?? "", ...env, ...(scopes ?? [])].join(" "));
  const place = world === "disabled" ? "on this machine, without a world" : "plainly, in its world";
  const how = verdict === "isolate" ? "isolated: its changes are held" : place;
  return [
    ...(text === undefined
      ? []
      : [["command", colours.bold(harmlessExcerpt(text, MOST_OF_COMMAND))] as const]),
    ...(alike === undefined ? [] : [["letters", colours.yellow(alike)] as const]),
    ...(shell === "bash" ? [["shell", "bash"] as const] : []),
    ...env.slice(0, MOST_LISTED).map((one) => ["with", harmlessExcerpt(one, MOST)] as const),
    ...(env.length > MOST_LISTED
      ? [["with", `${env.length - MOST_LISTED} more variables: --json shows them`] as const]
      : []),
    ...(input === undefined ? [] : [["input", input === 1 ? "1 byte" : `${input} bytes`] as const]),
    ...(typed === undefined || typed === ""
      ? []
      : [["", colours.bold(harmlessExcerpt(typed, MOST_OF_COMMAND))] as const]),
    ...(stdin === undefined ? [] : [["input", "arrives while the command runs"] as const]),
    ...(scopes ?? [])
      .slice(0, MOST_LISTED)
      .map((scope) => ["scope", colours.bold(harmlessExcerpt(scope, MOST))] as const),
    ...(verdict === undefined ? [] : [["runs", how] as const]),
  ];
}

/** Describes a preview: "writes 134 files: …", or the reason for a missing preview. */
export function previewWords(preview: ApprovalPreview): string {
  const { state, why } = preview;
  if (state === "running") return "is running";
  if (state !== "done") return `none: ${harmlessExcerpt(why ?? "not asked for", MOST)}`;
  const least = preview.truncated ? "at least " : "";
  const counts = [
    ["writes", preview.writes],
    ["changes", preview.mods],
    ["deletes", preview.deletes],
  ] as const;
  const done = counts
    .filter(([, count]) => count > 0)
    .map(([verb, count]) => `${verb} ${least}${counted(count, "file")}`);
  if (preview.dirs > 0) done.push(`makes ${least}${counted(preview.dirs, "folder")}`);
  const what = done.length === 0 ? "changes nothing in the project" : done.join(", ");
  return `${what}${namesOf(preview)}; ${endOf(preview)}${autorunOf(preview)}`;
}

function counted(count: number, thing: string): string {
  return `${count} ${thing}${count === 1 ? "" : "s"}`;
}

function namesOf({ names, writes, mods, deletes, dirs }: ApprovalPreview): string {
  if (names.length === 0) return "";
  const rest = writes + mods + deletes + dirs - names.length;
  return `: ${harmlessExcerpt(names.join(", "), MOST)}${rest > 0 ? ` and ${rest} more` : ""}`;
}

function endOf({ exit, signal, timed_out: late, duration_ms: ms }: ApprovalPreview): string {
  if (late) return `stopped after ${(ms / 1000).toFixed(0)} s, so there may be more`;
  return signal === null ? `exit ${exit ?? "unknown"}` : `ended by ${harmlessLine(signal)}`;
}

function autorunOf({ autorun }: ApprovalPreview): string {
  return autorun.length === 0
    ? ""
    : `; tools run by themselves: ${harmlessExcerpt(autorun.join(", "), MOST)}`;
}
