import { isAbsolute, relative, resolve } from "node:path";
import type {
  ChangesReply,
  DiffReply,
  HeldReply,
  Span,
  SpansReply,
  TraceReply,
} from "../../../schemas/generated/types.ts";
import { type Answer, call } from "../../client/client.ts";
import { coloursFor } from "../words/colours.ts";
import { paintPatch, statLines } from "../words/patch-words.ts";
import { commandWords } from "../words/program-words.ts";
import { ask, errorOf, exitOfRefusal, wordsOf } from "../terminal/replies.ts";
import { brokenOn, printRows, sayRows } from "../terminal/rows.ts";
import { saying } from "../words/saying.ts";
import {
  Complaint,
  harmlessExcerpt,
  harmlessLine,
  printJson,
  printLine,
  type Terminal,
} from "../terminal/terminal.ts";

export type ChangesOptions = { readonly json?: boolean };
export type DiffOptions = ChangesOptions & { readonly stat?: boolean };
export type ApplyOptions = ChangesOptions & { readonly skipRefused?: boolean };
export type Verb = "apply" | "discard" | "undo";

/** Paths of each list that a person is shown; `--json` has all. */
const MAX_SHOWN = 20;

/** Characters of a command in a message. */
const MOST_OF_WORDS = 60;

/** Paths, and spans, that the message of a refusal names. */
const NAMED_IN_MESSAGE = 3;

const DOING = { apply: "Applying", discard: "Discarding", undo: "Reverting" } as const;
const DONE = { apply: "applied", discard: "discarded", undo: "reverted" } as const;

/** The sentence about the paths that were not named: for one path, and for several. */
const WHERE_LEFT = {
  apply: ["is still held", "are still held"],
  discard: ["is still held", "are still held"],
  undo: ["stays in the project", "stay in the project"],
} as const;

/** The held changes of a span, as a patch or a line for each. What goes into a pipe is the patch itself. */
export async function showDiff(
  terminal: Terminal,
  span: string,
  paths: readonly string[],
  options: DiffOptions,
): Promise<number> {
  if (options.stat === true && options.json === true)
    throw new Complaint("Cannot use --stat together with --json: the JSON has the counts already");
  const { span_id: id, overlay } = await spanOf(terminal, span);
  const query = paths.map((path) => `path=${encodeURIComponent(changePathOf(terminal, path, overlay))}`);
  const path = `/v1/diff/${encodeURIComponent(id)}${query.length === 0 ? "" : `?${query.join("&")}`}`;
  const reply = await saying(terminal, "Comparing", ask<DiffReply>(terminal, path));
  if (options.json === true) {
    printJson(terminal, reply);
    return 0;
  }
  if (options.stat === true)
    for (const line of statLines(coloursFor(terminal), reply))
      printLine(terminal, brokenOn(terminal.out, line));
  else printPatch(terminal, reply);
  sayRest(terminal, reply, id);
  return 0;
}

/** Says that the broker goes on, should Ctrl-C end the wait for it. */
async function untilLeft<T>(terminal: Terminal, asked: Promise<T>): Promise<T> {
  const leave = (): void => {
    terminal.err.write(
      "substrate: the broker goes on with it: 'substrate held' and 'substrate trace list' show the end, 'substrate undo SPAN' takes an apply back\n",
    );
    process.exit(130);
  };
  process.once("SIGINT", leave);
  try {
    return await asked;
  } finally {
    process.off("SIGINT", leave);
  }
}

/** Applies, discards or takes back, and says what was done and what is held still. */
export async function changeHeld(
  terminal: Terminal,
  verb: Verb,
  span: string,
  paths: readonly string[],
  options: ApplyOptions,
): Promise<number> {
  const { span_id: id, overlay } = await spanOf(terminal, span, verb);
  const body = {
    ...(paths.length === 0 ? {} : { paths: paths.map((path) => changePathOf(terminal, path, overlay)) }),
    ...(options.skipRefused === true ? { skip_refused: true } : {}),
  };
  const asked = call(terminal.home.controlSocket, "POST", `/v1/${verb}/${encodeURIComponent(id)}`, body);
  const answer = await saying(terminal, DOING[verb], untilLeft(terminal, asked));
  if (options.json === true) printJson(terminal, answer.document);
  if (answer.status !== 200) {
    if (options.json !== true) sayRefusal(terminal, answer);
    return exitOfRefusal(answer);
  }
  if (options.json === true) return 0;
  const reply = answer.document as ChangesReply;
  show(terminal, verb, id, reply);
  if (verb === "apply") await sayAutorun(terminal, reply);
  return 0;
}

function printPatch(terminal: Terminal, { patch }: DiffReply): void {
  if (terminal.out.isTTY !== true) terminal.out.write(patch);
  // A line of a file that the terminal itself continued could look like a heading.
  else terminal.out.write(brokenOn(terminal.out, paintPatch(coloursFor(terminal), patch)));
}

/** Beside the patch, so that a pipe gets nothing else: folders have no place in it, nor has what it leaves out. */
function sayRest(terminal: Terminal, { changes, summary }: DiffReply, id: string): void {
  const say = (text: string): void => sayRows(terminal, `substrate: ${harmlessLine(text)}`);
  const autorun = changes.filter((change) => change.autorun).map(({ path }) => path);
  if (autorun.length > 0) say(`tools run by themselves: ${some(autorun)}`);
  const folders = changes.filter(({ kind }) => kind === "dir").length;
  if (folders > 0) say(`${folders === 1 ? "1 folder is" : `${folders} folders are`} new`);
  if (summary !== null) say(summary);
  if (changes.length > 0)
    say(`substrate apply ${id} applies the changes to the project, substrate discard ${id} discards them`);
}

function show(terminal: Terminal, verb: Verb, id: string, { done, left, skipped = [] }: ChangesReply): void {
  const paint = coloursFor(terminal);
  printLine(terminal, `${done.length === 1 ? "1 change" : `${done.length} changes`} ${DONE[verb]}`);
  for (const path of done.slice(0, MAX_SHOWN)) printRows(terminal, `  ${paint.green(harmlessLine(path))}`);
  if (done.length > MAX_SHOWN) printLine(terminal, `  … and ${done.length - MAX_SHOWN} more`);
  if (left.length > 0) {
    const where = WHERE_LEFT[verb][left.length === 1 ? 0 : 1];
    printRows(terminal, `${left.length} ${where}: ${harmlessLine(some(left))}`);
  }
  for (const line of reasonLines(skipped)) printRows(terminal, line);
  if (verb === "apply")
    printLine(terminal, `substrate undo ${id} reverts them, unless the files change first`);
}

/** What of the applied files is run by the person's own tools from now on. */
async function sayAutorun(terminal: Terminal, { change_span_id: id }: ChangesReply): Promise<void> {
  const { span } = await ask<TraceReply>(terminal, `/v1/trace/${encodeURIComponent(id)}`);
  const autorun = span.fs_diff?.autorun ?? [];
  if (autorun.length > 0) printRows(terminal, `tools run by themselves: ${harmlessLine(some(autorun))}`);
}

function some(paths: readonly string[]): string {
  const more = paths.length - 5;
  return `${paths.slice(0, 5).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Says why nothing was done. The message names the first paths; the lines after it list all. */
function sayRefusal(terminal: Terminal, answer: Answer): void {
  terminal.err.write(`substrate: ${wordsOf(answer)}\n`);
  const conflicts = errorOf(answer).conflicts ?? [];
  if (conflicts.length <= NAMED_IN_MESSAGE) return;
  for (const line of reasonLines(conflicts)) sayRows(terminal, line);
}

/** The refused paths, each reason once. */
function reasonLines(
  refused: readonly { readonly path: string; readonly reason: string }[],
): readonly string[] {
  const byReason = new Map<string, string[]>();
  for (const { path, reason } of refused.slice(0, MAX_SHOWN))
    byReason.set(reason, [...(byReason.get(reason) ?? []), path]);
  const more = refused.length - MAX_SHOWN;
  return [
    ...[...byReason].map(([reason, paths]) => `  ${harmlessLine(paths.join(", "))}: ${harmlessLine(reason)}`),
    ...(more > 0 ? [`  and ${more} more (--json lists them)`] : []),
  ];
}

async function spanOf(terminal: Terminal, id: string, verb?: Verb): Promise<Span> {
  if (id === "last") return await lastOf(terminal, verb);
  return (await ask<TraceReply>(terminal, `/v1/trace/${encodeURIComponent(id)}`)).span;
}

/** As many spans are looked through. */
const LOOKED_THROUGH = 1000;

/**
 * The newest span that held changes of the project around this folder. One to apply or discard must be the only one that holds any: an
 * agent may have left another since the person looked at the last.
 */
async function lastOf(terminal: Terminal, verb?: Verb): Promise<Span> {
  const { spans } = await ask<SpansReply>(terminal, `/v1/spans?limit=${LOOKED_THROUGH}`);
  const isHere = ({ overlay }: Span): boolean =>
    overlay !== undefined && !leadsOut(relative(overlay.project, terminal.cwd));
  if (verb === "apply" || verb === "discard") await refuseSeveral(terminal, verb);
  const found = spans.find(
    (span) => isHere(span) && (span.fs_diff?.held === true || wasApplied(span, spans)),
  );
  if (found === undefined)
    throw new Complaint(
      `Cannot find 'last': none of the last ${LOOKED_THROUGH} spans held changes of the project of '${terminal.cwd}'. Name a span: 'substrate trace list' shows them`,
    );
  sayRows(terminal, `substrate: ${found.span_id}  ${harmlessLine(commandWords(found.cmd ?? ""))}`);
  return found;
}

async function refuseSeveral(terminal: Terminal, verb: Verb): Promise<void> {
  const reply = await ask<HeldReply>(terminal, `/v1/held?cwd=${encodeURIComponent(terminal.cwd)}`);
  const { held, more } = reply;
  if (held.length + more <= 1) return;
  const named = held.slice(0, NAMED_IN_MESSAGE).map(({ span_id: id, cmd }) => {
    return `${id} (${harmlessExcerpt(commandWords(cmd ?? ""), MOST_OF_WORDS)})`;
  });
  throw new Complaint(
    `Cannot ${verb} 'last': ${held.length + more} commands hold changes of this project, and the last may not be the one that you have looked at. Name a span: ${named.join(", ")}${held.length + more > named.length ? ", …" : ""}; 'substrate held' lists them`,
  );
}

/** Whose changes were all applied by themselves: they can be reverted. */
function wasApplied({ span_id: id }: Span, spans: readonly Span[]): boolean {
  return spans.some(({ parent_span: parent, held_changes: event }) => parent === id && event !== undefined);
}

/**
 * Returns an id as given, and for `last` that of the newest command in this folder, below it or above it, which a line on standard
 * error then names.
 */
export async function idOf(
  terminal: Terminal,
  id: string,
  isWanted: (span: Span) => boolean = () => true,
): Promise<string> {
  if (id !== "last") return id;
  const { spans } = await ask<SpansReply>(terminal, `/v1/spans?limit=${LOOKED_THROUGH}`);
  const found = spans.find((span) => isCommand(span) && isNear(terminal, span) && isWanted(span));
  if (found === undefined)
    throw new Complaint(
      `Cannot find 'last': none of the last ${LOOKED_THROUGH} spans is a command in '${terminal.cwd}'. Name a span: 'substrate trace list' shows them`,
    );
  sayRows(terminal, `substrate: ${found.span_id}  ${harmlessLine(commandWords(found.cmd ?? ""))}`);
  return found.span_id;
}

function isCommand({ event_type: type }: Span): boolean {
  return type === "command_complete" || type === "command_start";
}

function isNear({ cwd: here }: Terminal, { cwd }: Span): boolean {
  return cwd !== null && [relative(here, cwd), relative(cwd, here)].some((path) => !leadsOut(path));
}

/** What a diff shows is relative to the project; what begins with / or ./ is looked for from here. */
function changePathOf(terminal: Terminal, path: string, overlay: Span["overlay"]): string {
  const isFromHere = isAbsolute(path) || /^\.{1,2}(\/|$)/.test(path);
  if (!isFromHere || overlay === undefined) return path;
  const within = relative(overlay.project, resolve(terminal.cwd, path));
  if (within !== "" && !leadsOut(within)) return within.startsWith('"') ? quotedHere(within) : within;
  throw new Complaint(`Cannot use '${path}': it is not below the project '${overlay.project}'`);
}

function leadsOut(path: string): boolean {
  return path === ".." || path.startsWith("../");
}

/** A name that begins with a quotation mark is quoted on the wire. */
function quotedHere(path: string): string {
  return `"${path.replace(/["\\]/g, "\\$&")}"`;
}
