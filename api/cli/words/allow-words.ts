/** Describes the change of `policy allow` for people and for programs. */
import type { Edit } from "../../../broker/allow/allow.ts";
import type { AllowKind, Standing, Wish } from "../../../broker/allow/wish.ts";
import type { CompiledPolicy } from "../../../broker/policy/index.ts";
import { harmless, harmlessLine, printLine, type Terminal } from "../terminal/terminal.ts";

/** The policy to edit. */
export type PolicyToEdit = {
  readonly name: string;
  readonly policy: CompiledPolicy;
  readonly text: string;
  /** Source and target file. They differ for a shipped policy: the operator's extending copy is written. */
  readonly from: string;
  readonly to: string;
};

export type Allowed = {
  readonly kind: AllowKind;
  readonly wanted: string;
  readonly target: PolicyToEdit;
  readonly wish: Wish;
  /** Absent if the policy needs no change. */
  readonly edit: Edit | undefined;
  readonly notes: readonly string[];
};

export function printAllowed(terminal: Terminal, { target, wish, edit, notes }: Allowed): void {
  if (edit === undefined) printLine(terminal, harmlessLine(alreadyWords(wish)));
  else {
    if (target.from !== target.to)
      printLine(
        terminal,
        `'${target.name}' is a shipped policy: '${target.to}' extends it and takes its place. Later changes of the shipped policy still apply`,
      );
    terminal.out.write(harmless(edit.patch));
  }
  for (const line of [...partlyWords(wish), ...notes]) printLine(terminal, `note: ${harmlessLine(line)}`);
}

function alreadyWords({ already }: Wish): string {
  return `already allowed by ${already?.source ?? "the policy"}: ${already?.how ?? "no rule refuses it"}. Nothing was changed`;
}

/** Maximum of listed names: policies deny a hundred names in a home folder. */
const SHOWN = 8;

/** Describes places still refused, grouped by the policy's line. */
function partlyWords({ partly }: Wish): readonly string[] {
  const bySource = new Map<string, Standing[]>();
  for (const one of partly) {
    const key = `${one.list} ${one.source}`;
    bySource.set(key, [...(bySource.get(key) ?? []), one]);
  }
  const lines = [...bySource.values()].slice(0, SHOWN).map((all) => {
    const names = all.slice(0, SHOWN).map(({ pattern }) => `'${pattern}'`);
    const more = all.length > SHOWN ? ` and ${all.length - SHOWN} more` : "";
    return `Still refused: ${names.join(", ")}${more} in ${all[0]?.list}, ${all[0]?.source}`;
  });
  return bySource.size > SHOWN
    ? [...lines, `and ${bySource.size - SHOWN} more lines that refuse a part of the path`]
    : lines;
}

/** Explains a refusal that no addition can lift, and names the alternative. */
export function refusedWords(wanted: string, { list, pattern, source }: Standing, file: string): string {
  const asks = list === "commands.ask";
  const whose = source.includes(":") ? source : `${source} has no such list, so its default holds`;
  const what = `Nothing was changed: '${pattern}' in ${list} (${whose}) ${asks ? "asks a person about" : "refuses"} '${wanted}', whatever else the policy allows`;
  const answer = asks ? "'substrate approve ID --always' approves permanently. " : "";
  const mend = source.includes(":")
    ? `To allow it all the same, remove '${pattern}' from that list in '${file}', or narrow the pattern`
    : `To allow it all the same, write that list into '${file}' without '${pattern}'`;
  return `${harmlessLine(what)}.\n  ${harmlessLine(answer + mend)}`;
}

/** Notes on a narrowing policy that does not allow the wish. */
export function narrowingNotes(name: string, { additions, refusals }: Wish): readonly string[] {
  const [refusal] = refusals;
  if (refusal !== undefined)
    return [
      `Policy '${name}' also applies here and refuses it: '${refusal.pattern}' in ${refusal.list}, ${refusal.source}`,
    ];
  if (additions.length === 0) return [];
  return [
    `Policy '${name}' also applies here and does not allow it: repeat the command with '--policy ${name}' to add it there`,
  ];
}

/** The change as a JSON document. */
export function allowedDocument(
  { kind, wanted, target, wish, edit, notes }: Allowed,
  written: boolean,
): object {
  return {
    kind,
    wanted,
    policy: target.name,
    file: target.to,
    copied_from: target.from === target.to ? null : target.from,
    additions: wish.additions,
    already: wish.already ?? null,
    patch: edit?.patch ?? "",
    still_refused: wish.partly,
    notes,
    written,
  };
}
