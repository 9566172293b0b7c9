/** Finds variables set by a command line for its programs. Pure. */
import type { CommandAssignment, CommandWord, ReadCommand, SimpleCommand } from "../words/command.ts";
import type { Where } from "./decision.ts";
import { isHarmless } from "./harmless-variables.ts";
import { passes } from "./passed-variables.ts";
import { loadsCode } from "../programs/programs.ts";

/** Whether a variable may make a program run or load code that the words of the command do not name. */
export function changesPrograms(assignments: readonly CommandAssignment[], where: Where): boolean {
  return assignments.some(
    ({ name, value: { kind, text } }) =>
      kind === "dynamic" || !(isHarmless(name, text) || where.given?.[name] === text),
  );
}

/** Variables of the shell itself: change which programs the shell finds or runs, exported or not. */
const OF_THE_SHELL: ReadonlySet<string> = new Set(
  "IFS ENV BASH_ENV PS0 PS4 PROMPT_COMMAND CDPATH FPATH SHELLOPTS BASHOPTS GLOBIGNORE POSIXLY_CORRECT EXECIGNORE".split(
    " ",
  ),
);
/** In the environment of every command: a plain assignment changes the value that programs get. */
const ALWAYS_EXPORTED: ReadonlySet<string> = new Set(
  "PATH HOME USER LOGNAME SHELL PWD OLDPWD SUBSTRATE_AGENT_ID SUBSTRATE_SPAN_ID".split(" "),
);
const DECLARATIONS: ReadonlySet<string> = new Set(["declare", "typeset", "local", "readonly"]);
/** Builtins whose words name the variables to set. */
const SETTERS: ReadonlySet<string> = new Set(["read", "printf", "getopts", "mapfile", "readarray", "let"]);
const NAME = /^([A-Za-z_][A-Za-z0-9_]*)(\+?=|\[|$)/;

/**
 * Whether a part of the line sets a variable for other parts: by `export`, or by assigning a variable already in the environment
 * (`PATH=…; make`). A shell variable that no program gets (`files=$(ls); wc $files`) does not count.
 *
 * @param passed names in the environment of the policy's commands (`world.env`), or globs.
 */
export function setsForOthers(
  { fragments, loops }: ReadCommand,
  passed: readonly string[],
  where: Where,
): boolean {
  const reaches = (name: string): boolean =>
    [ALWAYS_EXPORTED, OF_THE_SHELL].some((names) => names.has(name)) ||
    passes(passed, name) ||
    where.given?.[name] !== undefined ||
    loadsCode(name);
  const exportsAll = fragments.some(exportsEverything);
  const isBad = ({ name, value }: CommandAssignment, exported: boolean): boolean =>
    (exported || exportsAll || reaches(name)) && changesPrograms([{ name, value }], where);
  return (
    (loops ?? []).some(reaches) ||
    fragments.some((command) => setBy(command).some(({ exported, ...one }) => isBad(one, exported)))
  );
}

interface SetVariable extends CommandAssignment {
  readonly exported: boolean;
}

/** Returns the variables set by a command of assignments alone, or by a builtin with names as words. */
function setBy({ words, assignments }: SimpleCommand): readonly SetVariable[] {
  const [program, ...others] = words;
  if (program === undefined) return assignments.map((one) => ({ ...one, exported: false }));
  const isExport = program.text === "export";
  const isDeclaration = DECLARATIONS.has(program.text);
  if (!isExport && !isDeclaration && !SETTERS.has(program.text)) return [];
  const exported = isExport || (isDeclaration && others.some(({ text }) => /^[-+][a-zA-Z]*x/.test(text)));
  return others.flatMap((word) => namedBy(word, exported));
}

/** Reads `NAME`, `NAME=value`, and `$x` for any name. The value that `read NAME` assigns is unknown. */
function namedBy(word: CommandWord, exported: boolean): readonly SetVariable[] {
  const found = NAME.exec(word.text);
  const [, name = "", mark] = found ?? [];
  const unknown = { ...word, kind: "dynamic" as const };
  if (found === null) return word.text.includes("\0") ? [{ name: "", value: unknown, exported: true }] : [];
  const value = mark === "=" ? { ...word, text: word.text.slice(name.length + 1) } : unknown;
  return [{ name, value, exported }];
}

/** `set -a` exports each variable set afterwards; `set -k` takes assignments anywhere among the words. */
function exportsEverything({ words: [program, ...others] }: SimpleCommand): boolean {
  return (
    program?.text === "set" &&
    others.some(({ text }) => /^-[a-zA-Z]*[ak]|^(allexport|keyword)$/.test(text) || text.startsWith("\0"))
  );
}
