import type { Span, SpanConnection, TraceReply } from "../../../schemas/generated/types.ts";
import { previewWords } from "../words/approval-words.ts";
import { programEnd } from "../words/program-words.ts";
import { ask } from "../terminal/replies.ts";
import { spanLine, trafficWords } from "../words/span-lines.ts";
import { telemetryRows } from "../words/telemetry-words.ts";
import { harmless, harmlessLine, printJson, printLine, type Terminal } from "../terminal/terminal.ts";

type Row = readonly [name: string, value: string | null];

/** Paths of each list that a person is shown. */
const MAX_SHOWN = 20;

/** One span with everything that was recorded of it. */
export async function showSpan(terminal: Terminal, id: string, json: boolean): Promise<number> {
  const reply = await ask<TraceReply>(terminal, `/v1/trace/${encodeURIComponent(id)}`);
  const { span, children, next_cursor: next } = reply;
  if (json) {
    printJson(terminal, reply);
    return 0;
  }
  const rows: readonly Row[] = [
    ["command", span.cmd],
    ...connectionRows(span),
    ...programRows(span),
    ...telemetryRows(span),
    ["violation", violationWords(span)],
    ["changes", heldWords(span)],
    ["folder", span.cwd],
    ["agent", span.agent_id],
    ["policy", `${span.policy_id} ${span.policy_hash}`],
    ["verdict", verdictWords(span)],
    ["approval", approvalWords(span)],
    ["dropped", droppedWords(span)],
    ["outcome", outcomeWords(span)],
    ["because", reasonWords(span)],
    ["replay of", span.given?.replays ?? null],
    ["duration", span.duration_ms === null ? null : `${span.duration_ms} ms`],
    ["network", networkWords(span)],
    ["scopes", scopeWords(span)],
    ["world", span.world_id],
    ["session", span.session_id],
    ["chain", `${span.seq} ${span.hash}`],
  ];
  printLine(terminal, `${span.span_id}  ${span.event_type}  ${span.ts}`);
  for (const [name, value] of rows)
    if (value !== null) printLine(terminal, `  ${name.padEnd(9)} ${indented(value)}`);
  printChanges(terminal, span);
  for (const child of children) printLine(terminal, `  child     ${spanLine(terminal, child)}`);
  if (next !== undefined) printLine(terminal, `  child     … and more: --tree shows them`);
  return 0;
}

function programRows({ program, programs }: Span): readonly Row[] {
  const left = programs?.left_out ?? 0;
  const more = left === 0 ? "" : `, and ${left} more that have no span`;
  return [
    [
      "file",
      program === undefined ? null : harmlessLine(`${program.path} (pid ${program.pid} of its world)`),
    ],
    ["started", program?.started_at ?? null],
    ["programs", programs === undefined ? null : `${programs.recorded}: --tree shows them${more}`],
  ];
}

/** Lines of a command stand below its first one, so that none can look like a row. */
function indented(value: string): string {
  return harmless(value).replaceAll("\n", `\n${" ".repeat(12)}`);
}

function connectionRows({ connection }: Span): readonly Row[] {
  if (connection === undefined || connection === null) return [];
  const { host, port, address, program, pid } = connection;
  return [
    ["to", harmlessLine(`${host}:${port}${address === null || address === host ? "" : ` at ${address}`}`)],
    [
      "program",
      program === null ? null : harmlessLine(`${program}${pid === null ? "" : ` (pid ${pid} of its world)`}`),
    ],
  ];
}

/** What was done with held changes, or where those of a command are to be looked at. */
function heldWords({
  held_changes: event,
  fs_diff: diff,
  span_id: id,
  parent_span: parent,
}: Span): string | null {
  if (event === undefined) return diff?.held === true ? `held: 'substrate diff ${id}' shows them` : null;
  const counts = event.done === null ? "" : `, ${event.done} done, ${event.left ?? 0} left`;
  const paths = event.paths === null ? "all" : harmlessLine(event.paths.join(" "));
  return `${event.action} by ${event.by} of ${parent}: ${paths}${counts}`;
}

function violationWords({ event_type: type, violation, message }: Span): string | null {
  if (type !== "violation" || violation === undefined || violation === null) return null;
  const sentence = message === undefined || message === null ? "" : `: ${message}`;
  return harmlessLine(`${violation.kind} ${violation.subject}${sentence}`);
}

/** Why it was refused, or what limit it met; where that stands nowhere else. */
function reasonWords({ code, message, dropped, event_type: type, violation }: Span): string | null {
  const isTold = dropped !== undefined || (type === "violation" && (violation ?? null) !== null);
  if (isTold || (message ?? null) === null) return null;
  return harmlessLine((code ?? null) === null ? `${message}` : `${message} (${code})`);
}

function droppedWords({ dropped, message }: Span): string | null {
  if (dropped === undefined) return null;
  return `${message ?? ""}\n${dropped.files.map(({ file }) => file).join(" ")}`;
}

function networkWords({ usage }: Span): string | null {
  if (usage === null || (usage.egress_bytes === 0 && usage.ingress_bytes === 0)) return null;
  return trafficWords(usage) || null;
}

function scopeWords({ scopes_used: scopes }: Span): string | null {
  return scopes === null || scopes.length === 0 ? null : scopes.join(" ");
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
  if (span.connection !== undefined && span.connection !== null) return endWords(span.connection);
  if (span.event_type === "exec") return programEnd(span);
  const outcome = span.outcome ?? "-";
  if (span.signal !== null && span.signal !== undefined) return `${outcome}, ended by ${span.signal}`;
  return span.exit === null ? outcome : `${outcome}, exit ${span.exit}`;
}

function endWords({ ended, reason, unread }: SpanConnection): string {
  const words = reason === null ? ended : harmlessLine(`${ended}: ${reason}`);
  return unread === undefined ? words : `${words}, HTTP/2 without TLS: its hosts were not read`;
}

function printChanges(terminal: Terminal, { fs_diff: diff }: Span): void {
  if (diff === null) return;
  const marks = [
    ["+", diff.writes],
    ["~", diff.mods],
    ["-", diff.deletes],
    ["d", diff.dirs],
  ] as const;
  for (const [mark, paths] of marks) {
    for (const path of paths.slice(0, MAX_SHOWN)) printLine(terminal, `  ${mark} ${harmlessLine(path)}`);
    if (paths.length > MAX_SHOWN)
      printLine(terminal, `  ${mark} … and ${paths.length - MAX_SHOWN} more: --json lists them`);
  }
  if (diff.summary !== null) printLine(terminal, `  changes   ${indented(diff.summary)}`);
}
