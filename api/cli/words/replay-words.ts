/** Prints a replay's result: the matching parts, then the differences, then changes of the surroundings (drift). */
import type {
  ReplayChange,
  ReplayDrift,
  ReplayReply,
  ReplayResult,
} from "../../../schemas/generated/types.ts";
import { type Colours, coloursFor } from "./colours.ts";
import { groupsOf } from "./replay-runs.ts";
import { printRows } from "../terminal/rows.ts";
import { harmless, harmlessExcerpt, harmlessLine, printLine, type Terminal } from "../terminal/terminal.ts";

/** Maximum of shown lines of a diff; `--json` has all. */
const MAX_LINES = 60;
const MAX_CHANGES = 20;
const MAX_WORDS = 200;

const SIGNS: Readonly<Record<ReplayChange["kind"], string>> = { write: "+", mod: "~", delete: "-", dir: "d" };

export function printReplay(terminal: Terminal, reply: ReplayReply, policy: string | undefined): void {
  const colours = coloursFor(terminal);
  const { matches, results, differences, drift } = reply;
  printLine(terminal, headline(colours, reply));
  if (policy !== undefined || reply.verdicts.recorded !== reply.verdicts.now) printVerdicts(terminal, reply);
  printPart(terminal, colours, "exit", matches.exit, [endWords(results.recorded), endWords(results.now)]);
  printPart(terminal, colours, "stdout", matches.stdout);
  printText(terminal, colours, differences.stdout);
  printPart(terminal, colours, "stderr", matches.stderr);
  printText(terminal, colours, differences.stderr);
  printPart(terminal, colours, "changes", matches.fs_diff);
  printChanges(terminal, "only recorded", differences.fs_diff?.only_recorded ?? []);
  printChanges(terminal, "only now", differences.fs_diff?.only_now ?? []);
  for (const note of reply.notes) printRows(terminal, `  note      ${harmlessLine(note)}`);
  for (const each of drift) printRows(terminal, driftLine(each));
  printLine(terminal, `  replay    ${reply.replay_span_id}; its changes are not in the project`);
}

/** Prints several runs: a comparison, then the first run in full. */
export function printRuns(
  terminal: Terminal,
  replies: readonly ReplayReply[],
  alike: boolean,
  policy: string | undefined,
): void {
  const colours = coloursFor(terminal);
  const count = `${replies.length} runs`;
  printLine(
    terminal,
    alike
      ? colours.green(`${count} gave the same result: the command looks deterministic`)
      : colours.red(`${count} gave different results: the command is not deterministic`),
  );
  if (!alike)
    for (const [index, runs] of groupsOf(replies).entries())
      printLine(terminal, `  result ${index + 1}  run ${runs.join(", ")}`);
  const [first] = replies;
  if (first !== undefined) printReplay(terminal, first, policy);
}

function headline(colours: Colours, { matches, span_id: span }: ReplayReply): string {
  const all = Object.values(matches);
  if (all.every((match) => match === true)) return colours.green(`${span} gave the same result`);
  if (all.includes(false)) return colours.red(`${span} gave a different result this time`);
  return colours.yellow(`${span} gave the same result, as far as it could be compared`);
}

function printVerdicts(terminal: Terminal, { verdicts, decisions, results }: ReplayReply): void {
  const { recorded, now } = results;
  const rule = decisions.now.rule;
  const why = rule === null ? "" : `: '${rule.fragment}' matches '${rule.pattern}' in ${rule.list}`;
  printRows(
    terminal,
    harmlessLine(
      `  verdict   ${verdicts.recorded ?? "-"} (${recorded.policy_id}) → ${verdicts.now} (${now.policy_id})${why}`,
    ),
  );
}

function printPart(
  terminal: Terminal,
  colours: Colours,
  name: string,
  match: boolean | null,
  words?: readonly [string, string],
): void {
  const told = words === undefined ? "" : match === true ? ` (${words[0]})` : `: ${words[0]} → ${words[1]}`;
  const word =
    match === null
      ? colours.yellow("not compared")
      : match
        ? colours.green("the same")
        : colours.red("different");
  printLine(terminal, `  ${name.padEnd(9)} ${word}${told}`);
}

function endWords({ exit, signal, timed_out: timedOut }: ReplayResult): string {
  const end = signal === null ? `exit ${exit}` : `ended by ${signal}`;
  return timedOut ? `${end}, timed out` : end;
}

function printText(terminal: Terminal, colours: Colours, diff: string | null): void {
  if (diff === null) return;
  const lines = diff.replace(/\n$/, "").split("\n");
  for (const line of lines.slice(0, MAX_LINES)) printRows(terminal, `    ${painted(colours, line)}`);
  if (lines.length > MAX_LINES)
    printLine(terminal, `    … ${lines.length - MAX_LINES} more lines: --json shows them`);
}

function painted(colours: Colours, line: string): string {
  const text = harmless(line);
  if (line.startsWith("+")) return colours.green(text);
  return line.startsWith("-") ? colours.red(text) : text;
}

function printChanges(terminal: Terminal, title: string, changes: readonly ReplayChange[]): void {
  for (const { kind, path } of changes.slice(0, MAX_CHANGES))
    printRows(terminal, `    ${title}: ${SIGNS[kind]} ${harmlessLine(path)}`);
  if (changes.length > MAX_CHANGES)
    printLine(terminal, `    ${title}: … ${changes.length - MAX_CHANGES} more: --json shows them`);
}

function driftLine({ what, recorded, now }: ReplayDrift): string {
  const words = [recorded, now].map((value) => harmlessExcerpt(value ?? "none", MAX_WORDS));
  return `  drift     ${harmlessLine(what)}: ${words.join(" → ")}`;
}
