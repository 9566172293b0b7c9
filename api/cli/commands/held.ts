import type { HeldReply, HeldSpan } from "../../../schemas/generated/types.ts";
import { ageWords, sizeWords } from "../words/amounts.ts";
import { type Colours, coloursFor } from "../words/colours.ts";
import { commandWords } from "../words/program-words.ts";
import { ask } from "../terminal/replies.ts";
import { saying } from "../words/saying.ts";
import { printRows } from "../terminal/rows.ts";
import { harmlessExcerpt, harmlessLine, printJson, printLine, type Terminal } from "../terminal/terminal.ts";

export type HeldOptions = { readonly all?: boolean; readonly json?: boolean };

/** Characters of a command, and of a list of paths. */
const MOST = 200;

/** Which commands of the project around this folder, or of every project, changed what waits to be applied. */
export async function listHeld(terminal: Terminal, { all, json }: HeldOptions): Promise<number> {
  const query = all === true ? "" : `?cwd=${encodeURIComponent(terminal.cwd)}`;
  const reply = await saying(terminal, "Reading held changes", ask<HeldReply>(terminal, `/v1/held${query}`));
  if (json === true) printJson(terminal, reply);
  else show(terminal, reply, all === true);
  return 0;
}

function show(terminal: Terminal, { held, more }: HeldReply, all: boolean): void {
  if (held.length === 0) {
    const where = all ? "" : ` in the project of '${harmlessLine(terminal.cwd)}'; --all lists every project`;
    return printRows(terminal, `No changes wait to be applied${where}`);
  }
  const colours = coloursFor(terminal);
  for (const [index, entry] of held.entries()) {
    if (index === 0 || held[index - 1]?.project !== entry.project)
      printRows(terminal, colours.bold(harmlessLine(entry.project)));
    for (const line of linesOf(colours, entry)) printRows(terminal, `  ${line}`);
  }
  if (more > 0) printLine(terminal, `${more} older commands are not listed`);
  printLine(terminal);
  printLine(
    terminal,
    "substrate diff SPAN shows the changes, substrate apply SPAN applies them to the project, substrate discard SPAN discards them",
  );
}

function linesOf(colours: Colours, entry: HeldSpan): readonly string[] {
  const { span_id: id, paths, bytes, autorun, autorun_count: count, problem } = entry;
  const amount =
    paths === null || bytes === null
      ? "not read"
      : `${paths === 1 ? "1 path" : `${paths} paths`}, ${sizeWords(bytes)}`;
  const rest = count > autorun.length ? ` and ${count - autorun.length} more` : "";
  return [
    `${id}  ${amount}  ${ageWords(entry.ended_at, Date.now())}  ${harmlessLine(entry.agent_id)}  ${harmlessExcerpt(commandWords(entry.cmd ?? ""), MOST)}`,
    ...(count === 0
      ? []
      : [colours.yellow(`  tools run by themselves: ${harmlessExcerpt(autorun.join(", "), MOST)}${rest}`)]),
    ...(problem === null ? [] : [colours.yellow(`  ${harmlessLine(problem)}`)]),
  ];
}
