/** What of a command only its run decides, for whoever asks before. Pure. */
import type { CommandWord, ReadCommand, SimpleCommand } from "./command.ts";
import { programsOf, runsAnything } from "./runner-programs.ts";

/** Sentences; more are counted. */
const MOST = 8;

/** None when the words of the command say all that its rules ask about. */
export function undecidedIn(read: ReadCommand): readonly string[] {
  const all = [
    ...read.opaque.map(({ reason }) => reason),
    ...read.fragments.flatMap(unknownWords),
    ...programsThatRunOthers(read.fragments),
  ];
  const sentences = [...new Set(all)];
  const more = sentences.length - MOST;
  return more > 0 ? [...sentences.slice(0, MOST), `${more} more are left out here`] : sentences;
}

/** An unknown program word is opaque, which says so by itself. */
function unknownWords({ words, redirects, fragment, depth }: SimpleCommand): readonly string[] {
  if (depth > 0) return [];
  const targets = redirects.flatMap(({ target }) => (target === null ? [] : [target]));
  const shown = fragment.length > 80 ? `${fragment.slice(0, 79)}…` : fragment;
  return [...words.slice(1), ...targets]
    .filter(isUnknown)
    .map(({ raw }) => `What '${raw}' stands for in '${shown}' is only known when the command runs`);
}

function isUnknown({ kind }: CommandWord): boolean {
  return kind === "dynamic";
}

function programsThatRunOthers(commands: readonly SimpleCommand[]): readonly string[] {
  return programsOf(commands)
    .filter(runsAnything)
    .map(
      (name) =>
        `'${name}' may start programs that no word here names: each is decided at its start, by the same rules`,
    );
}
