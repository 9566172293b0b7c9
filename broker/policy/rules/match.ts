import type { Operand } from "../programs/arguments.ts";
import { type CommandWord, HOME_MARK } from "../words/command.ts";
import type { Where } from "./decision.ts";
import { baseName } from "../words/inner.ts";
import { isMoreThanSaid } from "./git-allow.ts";
import { looksLikePath, normalPath } from "../programs/paths.ts";
import { globMatches, PROJECT_MARK, type StagePattern, sortedFor } from "./pattern.ts";
import { type PreparedCommand, spellingsOf } from "./prepare.ts";
import { runsItsInput } from "../wrappers/shell-input.ts";

/**
 * How strictly a rule's words are compared. `refusing` rules (denied, ask, isolated, warn) match every equivalent spelling and
 * ignore further options. `allowing` rules (allowed, auto_approve) match only the words of their pattern.
 */
export type Reading = "refusing" | "allowing";

const SYSTEM_FOLDERS: ReadonlySet<string> = new Set([
  "/bin",
  "/sbin",
  "/usr/bin",
  "/usr/sbin",
  "/usr/local/bin",
  "/usr/local/sbin",
]);

export function stageMatches(stage: StagePattern, command: PreparedCommand, reading: Reading): boolean {
  if (reading === "allowing" && command.command.reduced === true) return false;
  if (stage.anyShell && stage.words.length === 0 && runsItsInput(command.command)) return true;
  if (!programMatches(stage, command, reading)) return false;
  if (reading === "allowing" && !isEveryProgram(stage) && isMoreThanSaid(stage, command)) return false;
  return argumentsMatch(stage, command, reading);
}

/** Whether a pattern's program word matches this program, whatever the other words. */
export function programMatches(stage: StagePattern, command: PreparedCommand, reading: Reading): boolean {
  // `*` alone means every program. An impostor is no concern: the pattern names no program.
  if (stage.program === "*" && (reading === "refusing" || isEveryProgram(stage))) return true;
  if (stage.bare && reading === "refusing")
    return stage.programName !== null && command.names.includes(stage.programName);
  const wanted = patternText(stage.program, command.where);
  if (wanted.includes("/")) return pathMatches(wanted, command, reading);
  const { written, names } = command;
  if (reading === "refusing") return names.some((name) => nameMatches(wanted, stage.programName, name));
  if (isPlanted(command)) return false;
  if (!written.includes("/"))
    return nameMatches(wanted, stage.programName, names[0] ?? "") || names[1] === stage.programName;
  return isInstalled(command) && nameMatches(wanted, stage.programName, names[0] ?? "");
}

function isEveryProgram({ program, rest, words, optionGlobs }: StagePattern): boolean {
  return program === "*" && rest && words.length === 0 && optionGlobs.length === 0;
}

function nameMatches(wanted: string, plain: string | null, name: string): boolean {
  return plain === null ? globMatches(wanted, name) : name === wanted || name === plain;
}

function pathMatches(wanted: string, command: PreparedCommand, reading: Reading): boolean {
  const path = normalPath(wanted, command.where.project);
  if (reading === "refusing" && command.real !== null && globMatches(path, command.real)) return true;
  if (command.path !== null) return globMatches(path, command.path);
  // An unresolved bare name: refusing is safe, allowing is not.
  return (
    reading === "refusing" &&
    !command.written.includes("/") &&
    globMatches(path, `${folderOf(path)}/${command.written}`)
  );
}

/** `/usr/bin/git` is `git`; `./git` is an impostor unless `git` resolves to the same file. */
function isInstalled(command: PreparedCommand): boolean {
  const { path, where } = command;
  if (path === null) return false;
  return isSystemProgram(path) || where.resolve?.(baseName(path))?.path === path;
}

/** Whether the name resolves to a file in the project: any command may have put the file there. */
function isPlanted({ path, where }: PreparedCommand): boolean {
  return path?.startsWith(`${where.project}/`) === true;
}

/** Whether the folder holds system-installed programs. */
export function isSystemFolder(folder: string): boolean {
  return SYSTEM_FOLDERS.has(folder);
}

/** Whether a word is a system-installed program's path, or a bare name. */
export function isSystemProgram(program: string): boolean {
  return !program.includes("/") || SYSTEM_FOLDERS.has(folderOf(program));
}

function folderOf(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf("/"), 0));
}

function argumentsMatch(stage: StagePattern, command: PreparedCommand, reading: Reading): boolean {
  const wanted = sortedFor(stage, command.facts);
  if (wanted.ended && !command.args.ended) return false;
  return (
    optionsMatch(stage, command, reading) &&
    stage.optionGlobs.every((glob) =>
      command.command.words.some((word) => word.text.startsWith("-") && globMatches(glob, word.text)),
    ) &&
    operandsMatch(wanted.operands, stage.rest, command, reading)
  );
}

function optionsMatch(stage: StagePattern, command: PreparedCommand, reading: Reading): boolean {
  const wanted = sortedFor(stage, command.facts).options;
  for (const [name, value] of wanted) {
    const given = command.args.options.get(name);
    if (given === undefined) return false;
    if (reading === "allowing" && command.args.guessed.has(name)) return false;
    if (value !== null && !valueMatches(value, given, command, reading)) return false;
  }
  if (reading === "refusing") return true;
  const extra = [...command.args.options.keys()].filter((name) => !wanted.has(name));
  return stage.rest
    ? !extra.some((name) => command.facts.loadsCode?.some((one) => isSpelledAs(name, one)) === true)
    : extra.length === 0;
}

/** Programs take an unambiguous beginning for the whole: `make --ev=…`. */
function isSpelledAs(name: string, option: string): boolean {
  return name === option || (name.length > 2 && option.startsWith("--") && option.startsWith(name));
}

function valueMatches(
  wanted: CommandWord,
  given: CommandWord | null,
  command: PreparedCommand,
  reading: Reading,
): boolean {
  if (given !== null) return wordMatches(wanted, given, command, reading);
  return command.args.operands.some(
    (operand) => operand.maybeValue && wordMatches(wanted, operand.word, command, reading),
  );
}

function operandsMatch(
  wanted: readonly Operand[],
  rest: boolean,
  command: PreparedCommand,
  reading: Reading,
): boolean {
  const given = command.args.operands;
  if (sequenceMatches(wanted, given, rest, command, reading)) return true;
  if (reading === "allowing") return false;
  return eachMatches(wanted, given, command) || skippingMatches(wanted, given, rest, command);
}

function sequenceMatches(
  wanted: readonly Operand[],
  given: readonly Operand[],
  rest: boolean,
  command: PreparedCommand,
  reading: Reading,
  from = 0,
): boolean {
  const left = given.length - from;
  if (rest ? left < wanted.length : left !== wanted.length) return false;
  return wanted.every((one, index) => {
    const other = given[from + index];
    return other !== undefined && wordMatches(one.word, other.word, command, reading);
  });
}

/** `rm a b` is `rm a` and `rm b`, so a rule about a single operand is matched against each operand. */
function eachMatches(
  wanted: readonly Operand[],
  given: readonly Operand[],
  command: PreparedCommand,
): boolean {
  const from = command.facts.eachFrom;
  if (from === undefined || wanted.length !== from + 1) return false;
  const fixed = given.slice(0, from);
  return given
    .slice(from)
    .some((one) => sequenceMatches(wanted, [...fixed, one], false, command, "refusing"));
}

/** Skips words before the subcommand that may be values of unknown options. */
function skippingMatches(
  wanted: readonly Operand[],
  given: readonly Operand[],
  rest: boolean,
  command: PreparedCommand,
): boolean {
  const [first] = wanted;
  if (first === undefined || given[0]?.maybeValue !== true) return false;
  return placesOf(first.word, command).some((from) =>
    sequenceMatches(wanted, given, rest, command, "refusing", from),
  );
}

/**
 * Returns the positions at which a pattern's first word stands behind words that may be values. Indexed by spelling: when a
 * thousand rules each scanned ten thousand such words, matching took a minute.
 */
function placesOf(wanted: CommandWord, command: PreparedCommand): readonly number[] {
  const { places } = command;
  if (places.size === 0) fillPlaces(command);
  if (wanted.kind !== "literal") return places.get(ANYWHERE) ?? [];
  const text = patternText(wanted.text, command.where);
  const path = looksLikePath(text) ? normalPath(text, command.folder) : text;
  const found = places.get(text) ?? [];
  return path === text ? found : [...found, ...(places.get(path) ?? [])];
}

/** Key for every position; the NUL keeps the key apart from real words. */
const ANYWHERE = "\0*";

function fillPlaces(command: PreparedCommand): void {
  const { places } = command;
  const { operands } = command.args;
  places.set(ANYWHERE, []);
  for (let at = 1; operands[at - 1]?.maybeValue === true; at += 1) {
    const operand = operands[at];
    if (operand === undefined) return;
    for (const key of [ANYWHERE, ...spellingsOf(operand.word, command).any]) {
      const known = places.get(key);
      if (known === undefined) places.set(key, [at]);
      else known.push(at);
    }
  }
}

function wordMatches(
  wanted: CommandWord,
  given: CommandWord,
  command: PreparedCommand,
  reading: Reading,
): boolean {
  if (wanted.text === "*") return reading === "refusing" || given.kind === "literal";
  const spellings = spellingsOf(given, command);
  const text = patternText(wanted.text, command.where);
  const path = looksLikePath(text) ? normalPath(text, command.folder) : text;
  if (reading === "allowing") return spellings.only !== null && sameWord(path, wanted.kind, spellings.only);
  return spellings.any.some(
    (spelling) =>
      sameWord(text, wanted.kind, spelling) || (path !== text && sameWord(path, wanted.kind, spelling)),
  );
}

function sameWord(pattern: string, kind: CommandWord["kind"], text: string): boolean {
  return kind === "glob" ? globMatches(pattern, text) : pattern === text;
}

function patternText(text: string, where: Where): string {
  return text.includes("\0")
    ? text.replace(HOME_MARK, where.home).replace(PROJECT_MARK, where.project)
    : text;
}
