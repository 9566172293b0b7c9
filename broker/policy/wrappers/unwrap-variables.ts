import type { CommandAssignment, CommandWord } from "../words/command.ts";
import { baseName, type Inner, scriptOf } from "../words/inner.ts";
import { gitSetting } from "./unwrap-git.ts";
import { DECLARING, evaluatedValue } from "./unwrap-builtins.ts";
import { CODE_VARIABLES, COMMAND_VARIABLES, OPTION_VARIABLES } from "./variable-table.ts";

const ASSIGNMENT = /^([A-Za-z_][A-Za-z0-9_]*)=/;

/** Returns the variables set by a command: before its program, or as words of `export` and similar. */
export function variablesOf(
  words: readonly CommandWord[],
  assignments: readonly CommandAssignment[],
): readonly CommandAssignment[] {
  const [program, ...others] = words;
  if (program === undefined || !DECLARING.has(baseName(program.text))) return assignments;
  const declared = others.flatMap((word) => {
    const name = ASSIGNMENT.exec(word.text)?.[1];
    return name === undefined ? [] : [{ name, value: { ...word, text: word.text.slice(name.length + 1) } }];
  });
  return [...assignments, ...declared];
}

/** Returns the commands that programs run because of these variables. */
export function unwrapVariables(assignments: readonly CommandAssignment[]): Inner[] {
  if (assignments.length === 0) return [];
  return [...assignments.flatMap(variableRuns), ...gitSettings(assignments)];
}

function variableRuns({ name, value }: CommandAssignment): Inner[] {
  if (COMMAND_VARIABLES.has(name)) return commandValue(value);
  if (name.startsWith("BASH_FUNC_")) return functionValue(name, value);
  const leads = OPTION_VARIABLES.get(name);
  const isCode = CODE_VARIABLES.has(name) ? !/^(|\/dev\/null)$/.test(value.text) : leads?.test(value.text);
  if (isCode === true)
    return [
      { kind: "opaque", reason: `The variable ${name} makes programs load code that cannot be checked` },
    ];
  return evaluatedValue(value);
}

/** `BASH_FUNC_ls%%=() { …; }`: every bash started with the variable has a function ls. */
function functionValue(name: string, value: CommandWord): Inner[] {
  const reason = `The variable ${name} defines a function that replaces the command of its name in every bash`;
  return [...scriptOf([{ ...value, text: `f ${value.text}` }], "bash", "bash"), { kind: "opaque", reason }];
}

/** Strips the leading bar of `LESSOPEN='|cmd %s'`. Words added by the program follow. */
function commandValue(value: CommandWord): Inner[] {
  const text = value.text.replace(/^\|+-?/, "");
  return text.trim() === "" ? [] : scriptOf([{ ...value, text: `${text} "$@"` }], "sh", "the variable");
}

/** `GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=name GIT_CONFIG_VALUE_0=value` is `git -c name=value`. */
function gitSettings(assignments: readonly CommandAssignment[]): Inner[] {
  const values = new Map(assignments.map(({ name, value }) => [name, value]));
  return [...values].flatMap(([name, key]) => {
    if (!name.startsWith("GIT_CONFIG_KEY_")) return [];
    const value = values.get(name.replace("_KEY_", "_VALUE_"));
    if (key.kind !== "dynamic" && value !== undefined) return gitSetting(key.text, value);
    return [
      { kind: "opaque" as const, reason: `The git setting in ${name} is only known when the command runs` },
    ];
  });
}
