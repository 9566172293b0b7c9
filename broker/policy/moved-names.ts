import { type CommandWord, HOME_MARK, type OpaqueSpot, type SimpleCommand } from "./command.ts";

/** Builtins whose words are names of variables that they set. */
const SETTERS: ReadonlySet<string> = new Set(
  "export declare typeset readonly local read unset printf getopts mapfile readarray let".split(" "),
);
const USES_IFS = /\$\{?IFS\b/;

/**
 * `$IFS` is read as a blank and `~` as the home folder. Where a command sets one of them and uses it too, what it uses
 * is not known.
 *
 * @param assigned names that loops set.
 */
export function movedNames(fragments: readonly SimpleCommand[], assigned: ReadonlySet<string>): OpaqueSpot[] {
  if (assigned.size === 0 && !fragments.some(mayMove)) return [];
  const isSet = (name: string, one: SimpleCommand): boolean => assigned.has(name) || sets(one, name);
  const spots: OpaqueSpot[] = [];
  const ifs = fragments.find((one) => wordsOf(one).some((word) => USES_IFS.test(word.raw)));
  if (ifs !== undefined && fragments.some((one) => isSet("IFS", one) || setsAnything(one)))
    spots.push({ fragment: ifs.fragment, reason: "What $IFS holds is only known when the command runs" });
  const movers = fragments.filter((one) => isSet("HOME", one));
  const home = fragments.find(
    (one) =>
      movers.some((mover) => mover !== one) && wordsOf(one).some((word) => word.text.includes(HOME_MARK)),
  );
  if (home !== undefined)
    spots.push({ fragment: home.fragment, reason: "Which folder ~ is, is only known when the command runs" });
  return spots;
}

function mayMove({ assignments, words: [program] }: SimpleCommand): boolean {
  return assignments.length > 0 || (program !== undefined && SETTERS.has(program.text));
}

function wordsOf(command: SimpleCommand): CommandWord[] {
  const targets = command.redirects.map((redirect) => redirect.target);
  return [...command.words, ...targets.filter((target) => target !== null)];
}

function sets(command: SimpleCommand, name: string): boolean {
  if (command.assignments.some((assignment) => assignment.name === name)) return true;
  const [program, ...others] = command.words;
  if (program === undefined || !SETTERS.has(program.text)) return false;
  return others.some((word) => word.text === name || word.text.startsWith(`${name}=`));
}

/** `export $x`, `read "$x"`. */
function setsAnything(command: SimpleCommand): boolean {
  const [program, ...others] = command.words;
  if (program === undefined || !SETTERS.has(program.text)) return false;
  return others.some((word) => word.text.startsWith("\0"));
}
