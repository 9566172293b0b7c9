import type {
  AgentSession,
  SessionsReply,
  Span,
  SpanConnection,
  SpansReply,
  TraceReply,
  TraceTreeReply,
} from "../../../schemas/generated/types.ts";
import { previewWords } from "../words/approval-words.ts";
import { programEnd } from "../words/program-words.ts";
import { idOf } from "./changes.ts";
import { ask } from "../terminal/replies.ts";
import { printRows } from "../terminal/rows.ts";
import { printSpan, trafficWords } from "../words/span-lines.ts";
import { telemetryRows } from "../words/telemetry-words.ts";
import { Complaint, harmless, harmlessJson, harmlessLine, printJson } from "../terminal/terminal.ts";
import { printLine, type Terminal } from "../terminal/terminal.ts";
import { timeBefore } from "../words/times.ts";
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { TraceTail } from "../../../broker/spans/trace-tail.ts";
import { DEEPEST } from "../../../broker/spans/span-tree.ts";
import type { Tree } from "../words/tree-folds.ts";
import { printTree } from "../words/tree-lines.ts";

type Row = readonly [name: string, value: string | null];

/** Paths of each list that a person is shown. */
const MAX_SHOWN = 20;

/** Rows that end with a hash, which can be copied whole. */
const HASHES: ReadonlySet<string> = new Set(["policy", "chain"]);

/** One span with everything that was recorded of it. */
export async function showSpan(terminal: Terminal, id: string, json: boolean): Promise<number> {
  const reply = await ask<TraceReply>(terminal, `/v1/trace/${encodeURIComponent(await idOf(terminal, id))}`);
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
    ["event", agentEventWords(span)],
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
    if (value !== null)
      (HASHES.has(name) ? printLine : printRows)(terminal, `  ${name.padEnd(9)} ${indented(value)}`);
  printChanges(terminal, span);
  for (const child of children) printSpan(terminal, child, "  child     ");
  if (next !== undefined) printLine(terminal, `  child     … and more: --tree shows them`);
  return 0;
}

function programRows({ program, programs }: Span): readonly Row[] {
  const left = programs?.left_out ?? 0;
  const more = left === 0 ? "" : `, and ${left} more without a span`;
  return [
    [
      "file",
      program === undefined ? null : harmlessLine(`${program.path} (pid ${program.pid} in its world)`),
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
      program === null ? null : harmlessLine(`${program}${pid === null ? "" : ` (pid ${pid} in its world)`}`),
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

function agentEventWords({ agent_event: told }: Span): string | null {
  if (told === undefined) return null;
  const { event, session_key: key, reason, prompt, tool, files = [] } = told;
  const rows = [
    reason,
    tool,
    ...files.map(({ path, access }) => `${access} ${path}`),
    prompt && `${prompt.bytes} bytes, sha256 ${prompt.sha256}`,
    key === null ? undefined : `session ${key}`,
  ];
  return [event, ...rows.flatMap((row) => row ?? [])].map(harmlessLine).join("\n");
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
    for (const path of paths.slice(0, MAX_SHOWN)) printRows(terminal, `  ${mark} ${harmlessLine(path)}`);
    if (paths.length > MAX_SHOWN)
      printLine(terminal, `  ${mark} … and ${paths.length - MAX_SHOWN} more: --json lists them`);
  }
  if (diff.summary !== null) printRows(terminal, `  changes   ${indented(diff.summary)}`);
}

export type ListOptions = {
  readonly limit: string;
  readonly agent?: string;
  readonly session?: string;
  readonly since?: string;
  readonly verdict?: string;
  readonly outcome?: string;
  readonly programs?: boolean;
  readonly json?: boolean;
};

type SpanFilter = {
  readonly [Name in keyof Omit<ListOptions, "limit" | "json">]: ListOptions[Name] | undefined;
};

/** The most that the broker answers at once. */
const MOST_A_PAGE = 1000;

/** As many spans as are asked for: a page of the broker may hold fewer, and say where to go on. */
export async function listSpans(terminal: Terminal, options: ListOptions): Promise<number> {
  const wanted = Number(options.limit);
  if (!/^\d+$/.test(options.limit) || wanted < 1)
    throw new Complaint(`Cannot list '${options.limit}' spans: a whole number from 1 is wanted`);
  const { session } = options;
  const ids = session === undefined ? [undefined] : await sessionIds(terminal, session);
  const lists: SpansReply[] = [];
  for (const id of ids) lists.push(await newestSpans(terminal, { ...options, session: id }, wanted));
  const found = lists.flatMap(({ spans: some }) => some);
  // By their start, as the broker lists them: the ids begin with that time.
  if (lists.length > 1) found.sort((one, other) => (one.span_id < other.span_id ? 1 : -1));
  const spans = found.slice(0, wanted);
  // The spans of several projects have no cursor in common.
  const next = lists.length === 1 ? (lists[0]?.next_cursor ?? null) : null;
  if (options.json === true) printJson(terminal, { spans, next_cursor: next });
  else for (const span of spans) printSpan(terminal, span);
  return 0;
}

/** The ids of an agent's session; of another word, the word: an agent may choose ids that look like the broker's. */
async function sessionIds(terminal: Terminal, session: string): Promise<readonly string[]> {
  const ids = (await sessionsOf(terminal, session)).flatMap(({ session_ids: all }) => all);
  return ids.length === 0 ? [session] : ids;
}

/** Sessions by the agents' own id: two agents may choose the same. */
export async function sessionsOf(terminal: Terminal, key: string): Promise<readonly AgentSession[]> {
  const { sessions } = await ask<SessionsReply>(
    terminal,
    `/v1/sessions?session_key=${encodeURIComponent(key)}`,
  );
  return sessions;
}

/** At most `wanted` spans, from as many pages as they take. */
export async function newestSpans(
  terminal: Terminal,
  options: SpanFilter,
  wanted: number,
): Promise<SpansReply> {
  const spans: Span[] = [];
  let cursor: string | null = null;
  do {
    const query: string = queryOf(options, wanted - spans.length, cursor);
    const reply: SpansReply = await ask<SpansReply>(terminal, `/v1/spans?${query}`);
    spans.push(...reply.spans);
    cursor = reply.next_cursor;
  } while (cursor !== null && spans.length < wanted);
  return { spans, next_cursor: cursor };
}

function queryOf(options: SpanFilter, left: number, cursor: string | null): string {
  const { agent, session, verdict, outcome, programs, since } = options;
  const from = since === undefined ? undefined : timeBefore(since, Date.now());
  const wanted = {
    limit: String(Math.min(left, MOST_A_PAGE)),
    agent_id: agent,
    session_id: session,
    verdict,
    outcome,
    programs: programs === true ? "true" : undefined,
    since: from,
    cursor: cursor ?? undefined,
  };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(wanted)) if (value !== undefined) query.set(name, value);
  return query.toString();
}

export type TailOptions = {
  readonly lines: string;
  readonly follow: boolean;
  readonly agent?: string;
  readonly session?: string;
  readonly json?: boolean;
};

const TAIL_MS = 200;

/** Prints the last lines, and new ones as they are written until it is interrupted. Needs no broker. */
export async function tailSpans(terminal: Terminal, options: TailOptions): Promise<number> {
  const path = terminal.home.trace;
  if (!/^\d{1,6}$/.test(options.lines))
    throw new Complaint(`Cannot show '${options.lines}' lines: a whole number up to 999999 is wanted`);
  if (!existsSync(path)) throw new Complaint(`Cannot find a trace at '${path}'`);
  const tail = new TraceTail(path);
  try {
    for (const line of tail.last(Number(options.lines), (text) => isWanted(text, options)))
      print(terminal, line, options);
    while (options.follow) {
      for (const line of tail.next()) if (isWanted(line, options)) print(terminal, line, options);
      await sleep(TAIL_MS);
    }
  } finally {
    tail.close();
  }
  return 0;
}

function print(terminal: Terminal, line: string, { json }: TailOptions): void {
  const span = spanOf(line);
  if (span === undefined) printRows(terminal, harmlessLine(line));
  else if (json === true) printLine(terminal, harmlessJson(line));
  else printSpan(terminal, span);
}

function isWanted(line: string, { agent, session }: TailOptions): boolean {
  if (agent === undefined && session === undefined) return true;
  const span = spanOf(line);
  return (
    span !== undefined &&
    (agent === undefined || span.agent_id === agent) &&
    (session === undefined || span.session_id === session)
  );
}

/** Undefined for a line that is no span, which is shown as it is. */
function spanOf(line: string): Span | undefined {
  try {
    const span = JSON.parse(line) as Partial<Span> | null;
    return typeof span?.span_id === "string" && span.cmd !== undefined ? (span as Span) : undefined;
  } catch {
    return undefined;
  }
}

/** `substrate trace SPAN --tree`: a span and all below it. */

/** A command leaves a hundred thousand programs at most, and nobody reads so many; more would fill the memory. */
const MOST_SPANS = 200_000;

const A_PAGE = 500;

type Found = { readonly tree: Tree; readonly depth: number };

type TreeOptions = { readonly json?: boolean; readonly all?: boolean };

export async function showTree(terminal: Terminal, id: string, options: TreeOptions): Promise<number> {
  const tree = await grow(terminal, await idOf(terminal, id));
  if (options.json === true) printJson(terminal, tree);
  else printTree(terminal, tree, options.all === true);
  return 0;
}

/** Each span comes after its parent, so that one look at each is enough. */
async function grow(terminal: Terminal, id: string): Promise<Tree> {
  const known = new Map<string | null, Found>();
  const path = `/v1/trace/${encodeURIComponent(id)}/tree?limit=${A_PAGE}`;
  let root: Tree | undefined;
  for (let cursor: string | null = ""; cursor !== null; ) {
    const after: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const page: TraceTreeReply = await ask<TraceTreeReply>(terminal, `${path}${after}`);
    for (const span of page.spans) {
      const tree = added(known, span);
      root ??= tree;
    }
    cursor = page.next_cursor;
    if (cursor === null || known.size < MOST_SPANS || root === undefined) continue;
    root.cut = true;
    break;
  }
  if (root === undefined) throw new Error(`The tree of ${id} came without it`);
  return root;
}

function added(known: Map<string | null, Found>, span: Span): Tree {
  const above = known.get(span.parent_span);
  const depth = (above?.depth ?? -1) + 1;
  const tree: Tree = { span, children: [], ...(depth >= DEEPEST ? { cut: true as const } : {}) };
  known.set(span.span_id, { tree, depth });
  above?.tree.children.push(tree);
  return tree;
}
