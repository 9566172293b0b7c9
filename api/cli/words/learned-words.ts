/** Prints the findings of `policy learn`: a patch, with all other lines as comments skipped by `patch`. */
import { seenWords } from "../../../broker/learn/observations.ts";
import type { JudgedCommand } from "../../../broker/learn/command-fates.ts";
import type { Observed } from "../../../broker/learn/observations.ts";
import type { Proposal } from "../../../broker/learn/propose.ts";
import type { CompiledPolicy } from "../../../broker/policy/index.ts";
import type { DecisionRule } from "../../../schemas/generated/types.ts";
import { brokenOn, printRows } from "../terminal/rows.ts";
import { harmless, harmlessLine, type Terminal } from "../terminal/terminal.ts";

/** A tested proposal, with the observations behind the proposal. */
export type LearnedPolicy = {
  readonly policy: CompiledPolicy;
  readonly file: string;
  /** For a shipped policy, the path of the operator's own copy to change. */
  readonly ownFile: string | undefined;
  readonly observed: Observed;
  /** Number of trace lines that are not spans. */
  readonly unreadable: number;
  readonly proposal: Proposal;
};

/** The findings as a JSON document. */
export function learnedDocument(learned: LearnedPolicy): object {
  const { policy, file, observed, unreadable, proposal } = learned;
  const of = (kind: JudgedCommand["fate"]["kind"]): readonly object[] =>
    proposal.commands.filter(({ fate }) => fate.kind === kind).map(commandDocument);
  return {
    policy: policy.id,
    file,
    spans: observed.spans,
    additions: proposal.additions,
    patch: proposal.patch,
    checked: proposal.checked,
    would_lift_a_denial: of("denied"),
    asks: of("asked"),
    cannot_be_expressed: of("unsayable"),
    runs_isolated: of("isolated"),
    allowed_by_now: of("allowed").length + proposal.writes.allowed + proposal.connections.allowed,
    writes_not_proposed: proposal.writes.stopped,
    connections_not_proposed: proposal.connections.stopped,
    violations: observed.violations,
    skipped: { ...observed.skipped, unreadable },
  };
}

function commandDocument({ observed, fate }: JudgedCommand): object {
  return {
    command: observed.argv ?? observed.text,
    cwd: observed.cwd,
    seen: observed.seen,
    ...("rule" in fate ? { rule: fate.rule } : {}),
    ...("why" in fate ? { why: fate.why } : {}),
  };
}

export function printLearned(terminal: Terminal, learned: LearnedPolicy): void {
  const { proposal, policy, file, observed } = learned;
  note(
    terminal,
    `Rules with which policy '${policy.id}' would have allowed the ${observed.spans} spans recorded under it.`,
  );
  if (proposal.patch === "") note(terminal, "No rule is proposed.");
  else {
    for (const line of howToApply(learned)) note(terminal, line);
    printPatch(terminal, proposal.patch);
    for (const line of checkedWords(learned)) note(terminal, line);
  }
  for (const [title, rows] of sections(learned)) {
    if (rows.length === 0) continue;
    note(terminal, "");
    note(terminal, title);
    for (const row of rows) note(terminal, `  ${row}`);
  }
  if (policy.rules.count["commands.allowed"] === 0)
    note(terminal, `commands.allowed is empty in ${file}: every command that no rule refuses may run.`);
}

/** The patch as it is for a pipe: `patch` reads it. */
function printPatch({ out }: Terminal, patch: string): void {
  out.write(out.isTTY === true ? brokenOn(out, harmless(patch)) : patch);
}

function note(terminal: Terminal, line: string): void {
  printRows(terminal, line === "" ? "#" : `# ${harmlessLine(line)}`);
}

function howToApply({ file, ownFile }: LearnedPolicy): readonly string[] {
  const target = ownFile ?? file;
  const copy =
    ownFile === undefined ? [] : [`'${file}' is a shipped policy. Copy it first: cp '${file}' '${ownFile}'`];
  return [...copy, `Check each line, then apply the patch: substrate policy learn … | patch '${target}'`];
}

function checkedWords({ proposal }: LearnedPolicy): readonly string[] {
  const { learned, unchanged, connections, cases, neighbours } = proposal.checked;
  const starred = proposal.additions.filter(({ list, value }) => list !== "fs.write" && value.includes("*"));
  return [
    "",
    "Tested before it was shown:",
    `  with the patch the file loads without new notes`,
    `  ${counted(learned, "observed command")} would run; the verdict on ${unchanged} others is unchanged`,
    ...(connections === 0 ? [] : [`  ${counted(connections, "observed connection")} would be allowed`]),
    `  ${counted(neighbours, "command")} that differ in one word and never ran get the same verdict as before`,
    cases === 0
      ? "  the policy has no cases to test the patch with"
      : `  all ${counted(cases, "case")} of the policy get the same verdict and rule as before`,
    ...starred.map(
      ({ value }) => `  '${value}' comes from --generalise: it also allows values that were never used`,
    ),
  ];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function whoseRule(
  kind: LearnedPolicy["observed"]["violations"][number]["kind"],
): "network" | "rule" | "world" {
  if (kind === "name" || kind === "connection") return "network";
  return kind === "program" ? "rule" : "world";
}

type Section = readonly [title: string, rows: readonly string[]];

function sections({ proposal, observed, unreadable }: LearnedPolicy): readonly Section[] {
  const commands = (kind: JudgedCommand["fate"]["kind"]): readonly string[] =>
    proposal.commands.filter(({ fate }) => fate.kind === kind).map(commandWords);
  const writes = (kind: string): readonly string[] =>
    proposal.writes.stopped
      .filter((write) => write.kind === kind)
      .map(({ path, why, seen }) => `write ${path}: ${why}; ${seenWords(seen)}`);
  const connections = proposal.connections.stopped.map(
    ({ to, why, seen }) => `connection to ${to}: ${why}; ${seenWords(seen)}`,
  );
  const violations = (by: "network" | "rule" | "world"): readonly string[] =>
    observed.violations
      .filter(({ kind }) => whoseRule(kind) === by)
      .map(({ kind, subject, seen }) => `${kind} ${subject}; ${seenWords(seen)}`);
  const { redacted, beyond } = observed.skipped;
  return [
    [
      "Denied by a rule, so not in the patch; to allow them, narrow or remove the rule:",
      [...commands("denied"), ...writes("denied")],
    ],
    ["A person must approve them; 'substrate approve ID --always' approves permanently:", commands("asked")],
    ["No rule can allow exactly these and nothing else:", [...commands("unsayable"), ...writes("unsayable")]],
    [
      "Not proposed on purpose; add them by hand if you want to allow them:",
      [...writes("held_back"), ...connections],
    ],
    ["Run isolated with their changes held, so they need no rule:", commands("isolated")],
    [
      "Refused connections and names; add them to net.allowed if you want to allow them (with mode: observe they are proposed):",
      violations("network"),
    ],
    ["Programs that a rule refused inside a command:", violations("rule")],
    ["Refused by the world's own rules, which no policy can change:", violations("world")],
    [
      "Skipped:",
      [
        ...countedRow(
          allowedByNow(proposal.commands) + proposal.writes.allowed + proposal.connections.allowed,
          "allowed by the policy already",
        ),
        ...countedRow(redacted, "recorded with credentials replaced, so the exact command is unknown"),
        ...countedRow(beyond, "beyond the limit of distinct commands and paths"),
        ...countedRow(unreadable, "unreadable lines of the trace (see 'substrate trace verify')"),
      ],
    ],
  ];
}

function allowedByNow(commands: readonly JudgedCommand[]): number {
  return commands.filter(({ fate }) => fate.kind === "allowed").length;
}

function countedRow(count: number, words: string): readonly string[] {
  return count === 0 ? [] : [`${count} ${words}`];
}

function commandWords({ observed, fate }: JudgedCommand): string {
  const rule = "rule" in fate && fate.rule !== null ? fate.rule : undefined;
  const why = "why" in fate ? `: ${fate.why}` : "";
  return `${observed.text}${rule === undefined ? "" : ruleWords(rule)}${why}; ${seenWords(observed.seen)}`;
}

/** Names the rule of a decision. For a command missing in `commands.allowed` no pattern matched, so only list and line are named. */
function ruleWords({ list, pattern, source, reason }: DecisionRule): string {
  if (list === "commands.allowed") return `: not in ${list}, ${source}`;
  return `: '${pattern}' in ${list}, ${source}${reason === undefined ? "" : ` (${reason})`}`;
}
