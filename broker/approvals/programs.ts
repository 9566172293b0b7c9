/** The programs and scripts named by a command, and which of their files could be replaced before the command runs. */
import { basename, isAbsolute, resolve } from "node:path";
import { HOME_MARK, type ReadCommand, type SimpleCommand } from "../policy/index.ts";
import { isWithin } from "../project/projects.ts";
import { contentOf, hostFileAt, isSeenAlike, startBitsOf } from "./host-file.ts";
import { interpreterOf } from "./interpreters.ts";
import { placesInVariables, type VariablePlaces } from "./variables.ts";
import { isInterpreter, looksInPath, type NamedScripts, optionValues, scriptsOf } from "./scripts.ts";

/** The folders searched for programs, and the paths writable by the agent. */
export type Surroundings = {
  readonly cwd: string;
  readonly project: string;
  readonly home: string;
  /** The command's PATH. */
  readonly path: string;
  /** Whether the command's input is the call's, which an answer is bound to. */
  readonly isInputKnown: boolean;
  /** Paths, or `path/**`. */
  readonly writable: readonly string[];
  /** `path/**`: what commands write there stays in their world, where the host does not see it. */
  readonly scratch: readonly string[];
};

/** A program's current state. `identity` is a content hash where the agent could replace the file. */
export type NamedProgram = {
  readonly path: string;
  readonly identity: string;
  readonly replaceable: boolean;
};

export type NamedPrograms = {
  readonly programs: readonly NamedProgram[];
  /** Reasons why the command's text does not determine the programs run; empty when the text does. */
  readonly unknown: readonly string[];
};

/** Bytes hashed per command; beyond, a file is identified by inode and times. */
const MAX_HASHED = 8 * 1024 * 1024;

const MAX_PROGRAMS = 256;

/** Paths looked up per command: each costs a few system calls, blocking every other agent. */
const MAX_LOOKED_AT = 2048;

/** Finds the programs named in a parsed command, and hashes replaceable files. */
export function namedPrograms(read: ReadCommand, around: Surroundings): NamedPrograms {
  const alone = read.fragments.length === 1 && read.operator === null;
  const rest = { words: MAX_LOOKED_AT };
  const found = read.fragments.flatMap((command) => toRun(command, around, alone, rest));
  const paths = [...new Set(found.flatMap(({ path }) => path ?? []))];
  const unknown = [
    ...found.flatMap(({ unknown: why }) => why ?? []),
    ...read.opaque.map(({ reason }) => reason),
    ...(read.incomplete ? ["The command could not be read completely"] : []),
    ...(rest.words < 0 ? [`The command has more than ${MAX_LOOKED_AT} paths that may be programs`] : []),
    ...(paths.length > MAX_PROGRAMS ? [`The command names more than ${MAX_PROGRAMS} programs`] : []),
  ];
  const budget = { bytes: MAX_HASHED };
  const programs = paths.slice(0, MAX_PROGRAMS).map((path) => identified(path, around, budget));
  const run = programs.flatMap((program) => runningIt(program, around, 0));
  const runners = [...new Set(run.flatMap(({ path }) => path ?? []))]
    .filter((path) => !paths.includes(path))
    .map((path) => identified(path, around, budget))
    // Most scripts are run by programs of the system: an answer need not be bound to those.
    .filter(({ replaceable }) => replaceable);
  return {
    programs: [...programs, ...runners],
    unknown: [...new Set([...unknown, ...run.flatMap(({ unknown: why }) => why ?? [])])],
  };
}

/** The kernel's bound: an interpreter may be a script itself. */
const MAX_NESTED = 4;

/** Finds the programs that run a script which the agent could replace, by its first line. */
function runningIt(
  { path, replaceable }: NamedProgram,
  around: Surroundings,
  nested: number,
): readonly Found[] {
  const file = replaceable && nested < MAX_NESTED ? hostFileAt(path, around) : { kind: "missing" as const };
  const interpreter = file.kind === "file" ? interpreterOf(file.real) : undefined;
  if (interpreter === undefined) return [];
  const { path: program, sought, unknown } = interpreter;
  if (unknown !== undefined)
    return [{ unknown: `'${unknown}' in the first line of '${path}' may name another file` }];
  if (!isAbsolute(program))
    return [
      { unknown: `'${program}', which runs '${path}', is looked up in the folder where the command runs` },
    ];
  const found = [
    { path: program },
    ...(sought === undefined ? [] : lookedUp(sought, { moves: null }, around)),
  ];
  const further = found.flatMap(({ path: next }) =>
    next !== undefined && isAbsolute(next) && isReplaceable(next, around)
      ? runningIt({ path: next, identity: "", replaceable: true }, around, nested + 1)
      : [],
  );
  return [...found.filter(({ path: each }) => each === undefined || isAbsolute(each)), ...further];
}

/** A path to look up, or the reason for having no path. */
type Found = { readonly path?: string; readonly unknown?: string };

function toRun(
  command: SimpleCommand,
  around: Surroundings,
  alone: boolean,
  rest: { words: number },
): readonly Found[] {
  const [program, ...words] = command.words;
  const changed = changesPath(command)
    ? [{ unknown: "The command changes PATH, where programs are searched" }]
    : [];
  if (program === undefined || program.kind !== "literal") return changed;
  const name = program.text;
  const named: NamedScripts = isInterpreter(name)
    ? scriptsOf(command, alone && around.isInputKnown)
    : {
        names: words.flatMap(({ kind, text }) => (kind === "literal" ? optionValues(text) : [])),
        unknown: [],
      };
  const variables = placesInVariables(command);
  rest.words -= costOf(name, named, around) + variables.reduce((sum, { words: all }) => sum + all.length, 0);
  if (rest.words < 0) return changed;
  return [
    ...changed,
    ...(name.includes("/") ? fileNamed(name, command, around, true) : lookedUp(name, command, around)),
    ...named.names.flatMap((text) => mentioned(text, command, around)),
    ...variables.flatMap((variable) => namedByVariable(variable, command, around)),
    ...[...named.unknown, ...folderThatRuns(named, command, around), ...movesUnseen(command)].map((why) => ({
      unknown: why,
    })),
  ];
}

/** Counts the paths to look up. */
function costOf(name: string, { names }: NamedScripts, { path }: Surroundings): number {
  const places = path.split(":").length;
  return (name.includes("/") ? 1 : places) + names.length * (looksInPath(name) ? places : 1);
}

/** Returns files named by an argument: any file for an interpreter, executable files for other programs. */
function mentioned(text: string, command: SimpleCommand, around: Surroundings): readonly Found[] {
  const program = command.words[0]?.text ?? "";
  const files = fileNamed(text, command, around, false);
  if (!isInterpreter(program))
    return files.filter(({ path }) => path !== undefined && startBitsOf(path) !== 0);
  if (command.moves === null && !isAbsolute(text)) return [{ unknown: `The folder of '${text}' is unknown` }];
  const isSought = looksInPath(program) && !text.includes("/") && text !== "";
  return isSought
    ? [...files, ...lookedUp(text, command, around).filter(({ path }) => path !== text)]
    : files;
}

/** A missing file counts: whoever makes it later changes what runs. A folder counts where the agent may write below it. */
function namedByVariable(
  { name, words, unknown }: VariablePlaces,
  { moves }: SimpleCommand,
  around: Surroundings,
): readonly Found[] {
  if (unknown !== undefined) return [{ unknown }];
  return words.flatMap((text): readonly Found[] => {
    const word = text.replace(HOME_MARK, around.home);
    if (word.includes("\0")) return [];
    if (!isAbsolute(word) && moves === null) return [{ unknown: `The folder of '${name}' is unknown` }];
    const path = resolve(folderAfter(around.cwd, around.home, moves ?? []), word);
    const { kind } = hostFileAt(path, around);
    if (kind === "hidden")
      return [{ unknown: `'${word}', which '${name}' names, is visible only inside the world` }];
    if (!isReplaceable(path, around) && kind !== "file") return [];
    return kind === "folder"
      ? [{ unknown: `'${name}' names the folder '${word}', whose files may be others when the command runs` }]
      : [{ path }];
  });
}

/** `python3 .`, `node app`. */
function folderThatRuns(
  { script }: NamedScripts,
  { moves }: SimpleCommand,
  around: Surroundings,
): readonly string[] {
  const { cwd, home } = around;
  if (script === undefined || script === "" || script.includes("\0")) return [];
  const path = isAbsolute(script) ? script : `${folderAfter(cwd, home, moves ?? [])}/${script}`;
  return hostFileAt(path, around).kind === "folder"
    ? [`'${script}' is a folder, and the program that runs from it is only known when the command runs`]
    : [];
}

/** Finds programs that change folder or input without a visible word. */
function movesUnseen({ words, redirects }: SimpleCommand): readonly string[] {
  const program = basename(words[0]?.text ?? "");
  if (program === "find" && words.some(({ text }) => text === "-execdir" || text === "-okdir"))
    return ["'find' runs its commands in folders that are only known when the command runs"];
  const isForRest = program === "exec" && words.length === 1;
  return isForRest && redirects.some(({ operator }) => operator.startsWith("<"))
    ? ["'exec' changes the input of the rest of the command"]
    : [];
}

function changesPath({ assignments, words }: SimpleCommand): boolean {
  return (
    assignments.some(({ name }) => name === "PATH") || words.some(({ text }) => text.startsWith("PATH="))
  );
}

/** Resolves a path argument. A path to no file counts only where a program is required. */
function fileNamed(
  text: string,
  { moves }: SimpleCommand,
  around: Surroundings,
  needed: boolean,
): readonly Found[] {
  const { cwd, home } = around;
  const word = text.replace(HOME_MARK, home);
  if (word.includes("\0")) return [];
  if (!isAbsolute(word) && moves === null) {
    return needed ? [{ unknown: `The folder of '${text}' is unknown` }] : [];
  }
  const folder = folderAfter(cwd, home, moves ?? []);
  const path = isAbsolute(word) ? word : `${folder}/${word}`;
  const { kind } = hostFileAt(path, around);
  if (kind === "hidden") return [{ unknown: `'${text}' is visible only inside the world` }];
  return needed || kind === "file" ? [{ path }] : [];
}

/** Resolves a bare program name by the command's PATH, with earlier candidates that could take its place. */
function lookedUp(
  name: string,
  { moves }: Pick<SimpleCommand, "moves">,
  around: Surroundings,
): readonly Found[] {
  const { path, cwd, home } = around;
  const passed: Found[] = [];
  for (const part of path.split(":")) {
    if (!isAbsolute(part) && moves === null)
      return [{ unknown: `The location of '${part}' in PATH is unknown` }];
    const folder = isAbsolute(part) ? part : `${folderAfter(cwd, home, moves ?? [])}/${part}`;
    if (!isSeenAlike(folder, around))
      return [{ unknown: `'${part}' in PATH is visible only inside the world` }];
    const file = hostFileAt(`${folder}/${name}`, around);
    if (file.kind === "hidden")
      return [{ unknown: `The target of '${name}' is visible only inside the world` }];
    if (file.kind !== "file") continue;
    passed.push({ path: `${folder}/${name}` });
    // The search skips a file when the user lacks the execute permission, so only a file executable by everybody ends the loop.
    if ((startBitsOf(file.real) & 0o111) === 0o111) return passed;
  }
  return [...passed, { path: name }];
}

/** A shell resolves `..` in its own path textually; the kernel follows links first. */
function folderAfter(cwd: string, home: string, moves: readonly string[]): string {
  return resolve(cwd, ...moves.map((move) => move.replace(HOME_MARK, home)));
}

function identified(path: string, around: Surroundings, budget: { bytes: number }): NamedProgram {
  const file = isAbsolute(path) ? hostFileAt(path, around) : { kind: "missing" as const };
  if (file.kind !== "file") {
    const identity = file.kind === "folder" ? "folder" : "missing";
    return { path, identity, replaceable: isReplaceable(path, around) };
  }
  const { real } = file;
  if (![path, real].some((one) => isReplaceable(one, around)))
    return { path, identity: `at ${real}`, replaceable: false };
  const bits = startBitsOf(real).toString(8);
  return { path, identity: `${contentOf(real, budget)} with ${bits} at ${real}`, replaceable: true };
}

/** Whether the agent may write there, or the path contains `..` and so cannot be compared as text. */
function isReplaceable(path: string, { project, writable }: Surroundings): boolean {
  if (path.split("/").includes("..")) return true;
  return [`${project}/**`, ...writable].some(
    (scope) => scope === path || (scope.endsWith("/**") && isWithin(path, scope.slice(0, -3) || "/")),
  );
}
