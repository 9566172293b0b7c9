/** Formats a span as a line, for `trace list`, `trace tail` and a span's children. */
import type {
  AgentEvent,
  HeldChangesEvent,
  Span,
  SpanConnection,
  Usage,
} from "../../../schemas/generated/types.ts";
import { coloursFor, paintVerdict } from "./colours.ts";
import { durationWords, programEnd, programWords } from "./program-words.ts";
import { printRows } from "../terminal/rows.ts";
import { harmless, harmlessLine, type Terminal } from "../terminal/terminal.ts";

/** Rows of a span in a list on a terminal: time and id fill most of the first one of 80 columns. */
const MOST_ROWS = 3;

export function printSpan(terminal: Terminal, span: Span, before = ""): void {
  printRows(terminal, `${before}${spanLine(terminal, span)}`, MOST_ROWS);
}

export function spanLine(terminal: Terminal, span: Span): string {
  const { ts, span_id: id } = span;
  return [ts, id, ...wordsOf(terminal, span)].filter((word) => word !== "").join("  ");
}

/** Formats a span as a line without time and id. */
export function spanWords(terminal: Terminal, span: Span): string {
  const kind = span.event_type === "builtin_command" ? ["builtin"] : [];
  return [...kind, ...wordsOf(terminal, span)].filter((word) => word !== "").join("  ");
}

function wordsOf(terminal: Terminal, span: Span): readonly string[] {
  const { connection, violation, event_type: type } = span;
  if (connection !== undefined && connection !== null) return connectionWords(terminal, span, connection);
  if (type === "violation" && violation !== undefined && violation !== null)
    return [type, violation.kind, harmlessLine(span.agent_id ?? ""), harmlessLine(violation.subject)];
  if (type === "exec") return programLine(span);
  if (span.agent_event !== undefined) return agentWords(span, span.agent_event);
  if (span.held_changes !== undefined) return changeWords(span, span.held_changes);
  return span.cmd === null ? eventWords(span) : commandWords(terminal, span, span.cmd);
}

function commandWords(terminal: Terminal, span: Span, cmd: string): readonly string[] {
  const asked = span.approval?.event;
  const verdict =
    asked === undefined
      ? paintVerdict(coloursFor(terminal), span.decision?.verdict ?? "-")
      : `approval ${asked}`;
  const replay = span.given?.replays === undefined ? "" : "replay";
  return [verdict, endWord(span), `${span.agent_id}`, replay, lineOfCommand(cmd)];
}

/** A command as one line; a command of several lines says how many are not shown. */
function lineOfCommand(cmd: string): string {
  const [first = "", ...more] = harmless(cmd.replace(/^[ \t\n]+|[ \t\n]+$/g, "")).split("\n");
  return more.length === 0 ? first : `${first} … [${more.length} more line${more.length === 1 ? "" : "s"}]`;
}

/** Formats a program: `exec  exit 0  claude  12 ms  cc -c x.c` */
function programLine(span: Span): readonly string[] {
  const agent = harmlessLine(span.agent_id ?? "");
  return [span.event_type, programEnd(span), agent, durationWords(span.duration_ms), programWords(span)];
}

/** Formats an agent's event: `agent  session_start  codex  startup`, `agent  prompt  codex  34 bytes  sha256 0f3a…`. */
function agentWords({ agent_id: agent, event_type: type }: Span, told: AgentEvent): readonly string[] {
  const { event, reason = "", prompt, tool = "", files = [] } = told;
  const mark = prompt === undefined ? [] : [`${prompt.bytes} bytes`, `sha256 ${prompt.sha256.slice(0, 12)}…`];
  const opened = files.slice(0, MOST_FILES).map(({ path }) => path);
  const more = files.length > MOST_FILES ? [`and ${files.length - MOST_FILES} more`] : [];
  const about = [reason, tool, ...opened, ...more].map(harmlessLine);
  return [type, event, harmlessLine(agent ?? ""), ...mark, ...about];
}

/** Files of a tool that one line names. */
const MOST_FILES = 3;

/** Formats the end of a span: `exit 0`; without an exit code the outcome: `running`, `lost`, `cancelled`. */
function endWord({ exit, outcome, event_type: type }: Span): string {
  if (exit !== null) return `exit ${exit}`;
  return type === "command_start" ? "running" : (outcome ?? "exit -");
}

/** Formats a change of held changes: `apply  ended  claude  3 done, 1 left  by operator  of spn_…` */
function changeWords(span: Span, { action, by, done, left }: HeldChangesEvent): readonly string[] {
  const counts = done === null ? "" : `${done} done, ${left ?? 0} left`;
  const code = span.code ?? null;
  const outcome = span.outcome ?? "running";
  return [
    action,
    outcome,
    harmlessLine(span.agent_id ?? ""),
    counts,
    code ?? "",
    `by ${by}`,
    `of ${span.parent_span}`,
  ];
}

/** Formats other events: `policy_reload  ended  policy default`. */
function eventWords(span: Span): readonly string[] {
  const about = span.agent_id ?? (span.policy_id === null ? "" : `policy ${span.policy_id}`);
  const said = span.event_type === "world" ? harmlessLine(span.message ?? "") : "";
  return [span.event_type, span.outcome ?? "-", harmless(about), said];
}

/** Formats a connection: `connection  closed  claude  a.example:443  1.2 kB out, 3.0 MB in  233 ms  curl` */
function connectionWords(terminal: Terminal, span: Span, connection: SpanConnection): readonly string[] {
  const { host, port, ended, program, reason, unread } = connection;
  const verdict = span.decision?.verdict ?? "allow";
  return [
    span.event_type,
    ended,
    harmlessLine(span.agent_id ?? ""),
    harmlessLine(`${host}:${port}`),
    trafficWords(span.usage),
    span.duration_ms === null ? "" : `${Math.round(span.duration_ms)} ms`,
    harmlessLine(program ?? "-"),
    verdict === "allow" ? "" : paintVerdict(coloursFor(terminal), verdict),
    reason === null ? "" : `(${harmlessLine(reason)})`,
    unread === undefined ? "" : "(HTTP/2 without TLS: its hosts were not read)",
  ];
}

/** Formats traffic: `1.2 kB out, 3.0 MB in`; empty if not counted. */
export function trafficWords(usage: Pick<Usage, "egress_bytes" | "ingress_bytes"> | null): string {
  if (usage === null || usage.egress_bytes === null || usage.ingress_bytes === null) return "";
  return `${bytesWord(usage.egress_bytes)} out, ${bytesWord(usage.ingress_bytes)} in`;
}

const UNITS = ["kB", "MB", "GB", "TB"] as const;

/** Formats bytes in powers of 1000 with a decimal; below 1000 exactly. */
function bytesWord(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  // Below 999.95, not 1000: 999 950 bytes would be rounded to 1000.0 kB.
  const power = UNITS.findIndex((_unit, index) => bytes / 1000 ** (index + 1) < 999.95);
  const index = power === -1 ? UNITS.length - 1 : power;
  return `${(bytes / 1000 ** (index + 1)).toFixed(1)} ${UNITS[index]}`;
}
