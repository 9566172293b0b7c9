/** Finds the files and folders that the variables of a command name: programs load code from there (`PERL5LIB=lib`). */
import { type CommandAssignment, isHarmless, type SimpleCommand } from "../policy/index.ts";
import { optionValues } from "./scripts.ts";

/** Words of a variable's value that may be paths, or the reason why they are unknown. */
export type VariablePlaces = {
  readonly name: string;
  readonly words: readonly string[];
  readonly unknown: string | undefined;
};

/** Separators of lists (`a:b`), of options (`-Clinker=x`) and of URLs (`file:./x`); a name may contain most of them. */
const BETWEEN: readonly RegExp[] = [/\n/, /\s+/, /[\s:]+/, /[\s:;,=]+/];

/** An empty entry of a list of folders is the working folder. */
const HAS_EMPTY_ENTRY = /^:|:$|::/;

/** Folders that shells and activated environments name in every command; the programs there are found by PATH. */
const ALWAYS_SET: ReadonlySet<string> = new Set(["PATH", "PWD", "OLDPWD", "VIRTUAL_ENV", "CONDA_PREFIX"]);

/**
 * Looks at every variable that the command gives a program, unless its value can only be harmless: a list of those that load code
 * would never be complete.
 */
export function placesInVariables(command: SimpleCommand): readonly VariablePlaces[] {
  return givenTo(command).flatMap(({ name, value }): VariablePlaces[] => {
    if (ALWAYS_SET.has(name) || (value.kind === "literal" && isHarmless(name, value.text))) return [];
    if (value.kind !== "literal")
      return [{ name, words: [], unknown: `the value of '${name}' is only known when the command runs` }];
    const parts = BETWEEN.flatMap((between) => value.text.split(between)).filter((part) => part !== "");
    const words = [...parts.flatMap(optionValues), ...(HAS_EMPTY_ENTRY.test(value.text) ? ["."] : [])];
    return [{ name, words: [...new Set(words)].filter((word) => word !== ""), unknown: undefined }];
  });
}

/** Variables of a command without words stay in the shell, or are for others (`setsForOthers`). */
function givenTo({ words, assignments }: SimpleCommand): readonly CommandAssignment[] {
  return words.length === 0 ? [] : assignments;
}
