/** Describes what `substrate init` finds, changes, proves and takes back. */
import { changesOf, notesOf, type Plan } from "../init/connect.ts";
import type { FoundAgent, FoundConnection } from "../init/found.ts";
import type { Answer, Proof } from "../init/proof.ts";
import type { Restored } from "../init/undo.ts";
import { harmlessExcerpt, harmlessLine, printLine, type Terminal } from "../terminal/terminal.ts";
import { ageWords } from "./amounts.ts";

export function printFound(terminal: Terminal, agents: readonly FoundAgent[]): void {
  for (const { agent, program, settings, connected } of agents) {
    const places = [program, settings].filter((each) => each !== null).map(harmlessLine);
    const found = places.length === 0 ? "not found" : places.join(", ");
    const state = places.length > 0 && connected.length === 0 ? ", not connected" : "";
    printLine(terminal, `${agent.padEnd(12)} ${found}${state}`);
    for (const each of connected) printLine(terminal, `${"".padEnd(12)} ${connectionWords(each, agent)}`);
  }
  printLine(terminal, "'substrate init AGENT' connects one, and shows each change before it writes");
}

/** `connected 3 min ago in your own settings`, with what is missing of it. */
export function connectionWords({ project, since, intact }: FoundConnection, agent: string): string {
  const place = project === null ? "in your own settings" : `in ${harmlessLine(project)}`;
  const lack = intact
    ? ""
    : `, but its settings were changed since ('substrate init ${agent}${project === null ? "" : " --project"}' mends them)`;
  return `connected ${ageWords(since, Date.now())} ${place}${lack}`;
}

export function printPlan(terminal: Terminal, plan: Plan): void {
  const { agent, ground } = plan;
  const changes = changesOf(plan);
  if (changes.length === 0)
    printLine(
      terminal,
      `${agent.title} is connected already ${placeWords(ground.project)}: nothing was changed`,
    );
  for (const { what, patch } of changes) {
    printLine(terminal, `${what}:`);
    printPatch(terminal, patch);
    printLine(terminal);
  }
  for (const note of notesOf(plan)) printLine(terminal, `note: ${harmlessLine(note)}`);
}

/** Tabs, and the carriage returns of line ends, are layout. */
function printPatch(terminal: Terminal, patch: string): void {
  const lines = patch.split(/\r?\n/).map((line) => line.split("\t").map(harmlessLine).join("\t"));
  terminal.out.write(lines.join("\n"));
}

function placeWords(project: string | undefined): string {
  return project === undefined ? "in your own settings" : `in ${harmlessLine(project)}`;
}

export function printNotes(terminal: Terminal, byHand: readonly string[]): void {
  printLine(terminal, "By hand:");
  for (const each of byHand) printLine(terminal, `  - ${harmlessLine(each)}`);
}

/** Characters of a line of an answer, and lines, that are shown. */
const MOST = 300;
const MOST_LINES = 8;

export function printProof(
  terminal: Terminal,
  { agent, ground }: Plan,
  { proved, answers, ran }: Proof,
): void {
  const way = ran
    ? "shell that is named (an allowed command runs in a world)"
    : "hook that is installed (neither command was run)";
  printLine(terminal, `Proof, through the ${way}:`);
  for (const answer of answers) {
    printLine(terminal, `  $ ${answer.command}`);
    for (const line of gotLines(answer, ran)) printLine(terminal, `    ${harmlessExcerpt(line, MOST)}`);
  }
  const options = ground.project === undefined ? "" : " --project";
  if (proved) {
    printLine(
      terminal,
      `The settings of ${agent.title} are in place. 'substrate init ${agent.id}${options}' proves it again`,
    );
    return;
  }
  terminal.err.write(
    `substrate: The proof failed, though the settings are written: ${agent.title} cannot be relied on to ask Substrate, or cannot run commands.\n  'substrate init ${agent.id}${options} --undo' gives the files back as they were\n`,
  );
}

function gotLines({ wanted, got, words }: Answer, ran: boolean): readonly string[] {
  const said = ran && got === "allowed" ? "allowed, and says" : GOT[got];
  const heading = wanted === got ? said : `${said} (should be ${wanted})`;
  return [
    `${heading}:`,
    ...words
      .split("\n")
      .slice(0, MOST_LINES)
      .map((line) => `  ${line}`),
  ];
}

const GOT: Readonly<Record<Answer["got"], string>> = {
  denied: "denied",
  allowed: "allowed, and runs as",
  asked: "asks a person",
  unreadable: "gives no answer that the agent understands",
};

export function printBlockers(terminal: Terminal, title: string, blockers: readonly string[]): void {
  for (const each of blockers)
    terminal.err.write(`substrate: ${title} does not ask Substrate yet: ${harmlessLine(each)}\n`);
}

export function printRestored(terminal: Terminal, title: string, files: readonly Restored[]): void {
  for (const { path, how, patch, notes } of files) {
    printLine(terminal, `${harmlessLine(path)}: ${HOW[how]}`);
    for (const note of notes) printLine(terminal, `  note: ${harmlessLine(note)}`);
    if (how === "taken_out") printPatch(terminal, patch);
  }
  printLine(terminal, `${title} is no longer connected there. Start it again where it runs now`);
}

const HOW: Readonly<Record<Restored["how"], string>> = {
  restored: "as it was, byte for byte",
  removed: "removed: there was no such file before",
  taken_out: "what init added is taken out",
  unchanged: "nothing to take out",
  kept: "stays as it is",
};
