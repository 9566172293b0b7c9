/** Finds the files and folders that the variables of a command name: programs load code from there (`PERL5LIB=lib`). */
import { basename } from "node:path";
import { type CommandAssignment, isHarmless, type SimpleCommand } from "../policy/index.ts";
import { optionValues } from "./scripts.ts";

/** Words of a variable's value that may be paths, or the reason why they are unknown. */
export type VariablePlaces = {
  readonly name: string;
  readonly words: readonly string[];
  readonly unknown: string | undefined;
};

const DECLARATIONS: ReadonlySet<string> = new Set(["export", "declare", "typeset", "readonly", "env"]);
const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)\+?=/;

/** Separators of lists (`a:b`), of options (`-Clinker=x`) and of URLs (`file:./x`). */
const BETWEEN = /[\s:;,=]+/;

/** Folders that shells and activated environments name in every command; the programs there are found by PATH. */
const ALWAYS_SET: ReadonlySet<string> = new Set(["PATH", "PWD", "OLDPWD", "VIRTUAL_ENV", "CONDA_PREFIX"]);

/**
 * Looks at every variable that the command gives a program, unless its value can only be harmless: a list of those that load code
 * would never be complete.
 */
export function placesInVariables(command: SimpleCommand): readonly VariablePlaces[] {
  return [...givenTo(command), ...declaredBy(command)].flatMap(({ name, value }): VariablePlaces[] => {
    if (ALWAYS_SET.has(name) || (value.kind === "literal" && isHarmless(name, value.text))) return [];
    if (value.kind !== "literal")
      return [{ name, words: [], unknown: `the value of '${name}' is only known when the command runs` }];
    const words = value.text.split(BETWEEN).flatMap((word) => optionValues(word));
    return [{ name, words: [...new Set(words)].filter((word) => word !== ""), unknown: undefined }];
  });
}

/** Variables of a command without words stay in the shell. */
function givenTo({ words, assignments }: SimpleCommand): readonly CommandAssignment[] {
  return words.length === 0 ? [] : assignments;
}

function declaredBy({ words: [program, ...words] }: SimpleCommand): readonly CommandAssignment[] {
  if (!DECLARATIONS.has(basename(program?.text ?? ""))) return [];
  return words.flatMap((word) => {
    const name = ASSIGNMENT.exec(word.text)?.[1];
    if (name === undefined) return [];
    return [{ name, value: { ...word, text: word.text.slice(word.text.indexOf("=") + 1) } }];
  });
}
