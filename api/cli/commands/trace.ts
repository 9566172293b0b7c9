import { existsSync, statSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { readLines } from "../../../broker/spans/lines.ts";
import type { Span, SpansReply, TraceReply } from "../../../schemas/generated/types.ts";
import { previewWords } from "../approval-words.ts";
import { coloursFor, paintVerdict } from "../colours.ts";
import { ask } from "../replies.ts";
import { Complaint, harmless, harmlessLine, printJson, printLine, type Terminal } from "../terminal.ts";

const TAIL_MS = 200;

/** One span with everything that was recorded of it. */
export async function showSpan(terminal: Terminal, id: string, json: boolean): Promise<number> {
  const { span, children } = await ask<TraceReply>(terminal, `/v1/trace/${encodeURIComponent(id)}`);
  if (json) {
    printJson(terminal, { span, children });
    return 0;
  }
  const rows: readonly (readonly [string, string | null])[] = [
    ["command", span.cmd],
    ["folder", span.cwd],
    ["agent", span.agent_id],
    ["policy", `${span.policy_id} ${span.policy_hash}`],
    ["verdict", verdictWords(span)],
    ["approval", approvalWords(span)],
    ["outcome", outcomeWords(span)],
    ["duration", span.duration_ms === null ? null : `${span.duration_ms} ms`],
    ["world", span.world_id],
    ["session", span.session_id],
    ["chain", `${span.seq} ${span.hash}`],
  ];
  printLine(terminal, `${span.span_id}  ${span.event_type}  ${span.ts}`);
  for (const [name, value] of rows)
    if (value !== null) printLine(terminal, `  ${name.padEnd(9)} ${harmless(value)}`);
  printChanges(terminal, span);
  for (const child of children) printLine(terminal, `  child     ${line(terminal, child)}`);
  return 0;
}

export async function listSpans(terminal: Terminal, limit: string, json: boolean): Promise<number> {
  const reply = await ask<SpansReply>(terminal, `/v1/spans?limit=${encodeURIComponent(limit)}`);
  if (json) printJson(terminal, reply);
  else for (const span of reply.spans) printLine(terminal, line(terminal, span));
  return 0;
}

/** Prints spans as they are written, until it is interrupted. */
export async function tailSpans(terminal: Terminal): Promise<number> {
  const path = terminal.home.trace;
  if (!existsSync(path)) throw new Complaint(`There is no trace yet at '${path}'`);
  let from = statSync(path).size;
  for (;;) {
    for await (const { offset, length, text } of readLines(path, from)) {
      printLine(terminal, line(terminal, JSON.parse(text) as Span));
      from = offset + length + 1;
    }
    await sleep(TAIL_MS);
  }
}

function line(terminal: Terminal, span: Span): string {
  if (span.cmd === null) return eventLine(span);
  const asked = span.approval?.event;
  const verdict =
    asked === undefined
      ? paintVerdict(coloursFor(terminal), span.decision?.verdict ?? "-")
      : `approval ${asked}`;
  const exit = span.exit === null ? "-" : String(span.exit);
  return `${span.ts}  ${span.span_id}  ${verdict}  exit ${exit}  ${span.agent_id}  ${harmless(span.cmd ?? "").split("\n")[0]}`;
}

/** What is no command: `policy_reload  ended  policy default`. */
function eventLine(span: Span): string {
  const about = span.agent_id ?? (span.policy_id === null ? "" : `policy ${span.policy_id}`);
  return `${span.ts}  ${span.span_id}  ${span.event_type}  ${span.outcome ?? "-"}  ${harmless(about)}`.trimEnd();
}

function verdictWords({ decision }: Span): string | null {
  if (decision === null) return null;
  if (decision.rule === null) return `${decision.verdict} (${decision.mode})`;
  const { fragment, pattern, list, source } = decision.rule;
  return `${decision.verdict} (${decision.mode}): '${fragment}' matches '${pattern}' in ${list}, ${source}`;
}

function approvalWords({ approval_id: id, approval }: Span): string | null {
  if (id === undefined || id === null) return null;
  if (approval === undefined || approval === null) return id;
  const preview = approval.preview === undefined ? "" : `: ${previewWords(approval.preview)}`;
  return `${id} ${approval.event}${approval.by === null ? "" : ` through ${approval.by}`}${preview}`;
}

function outcomeWords(span: Span): string {
  if (span.event_type === "command_start") return "still running";
  const outcome = span.outcome ?? "-";
  if (span.signal !== null && span.signal !== undefined) return `${outcome}, ended by ${span.signal}`;
  return span.exit === null ? outcome : `${outcome}, exit ${span.exit}`;
}

function printChanges(terminal: Terminal, { fs_diff: diff }: Span): void {
  if (diff === null) return;
  const marks = [
    ["+", diff.writes],
    ["~", diff.mods],
    ["-", diff.deletes],
    ["d", diff.dirs],
  ] as const;
  for (const [mark, paths] of marks)
    for (const path of paths.slice(0, 20)) printLine(terminal, `  ${mark} ${harmlessLine(path)}`);
  if (diff.summary !== null) printLine(terminal, `  changes   ${diff.summary}`);
}
