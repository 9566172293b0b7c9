/** Finds the files that an interpreter is told to run, as far as its arguments show them. */
import { basename } from "node:path";
import type { CommandWord, SimpleCommand } from "../policy/index.ts";

/** Arguments that may name executed files, or reasons why the arguments do not show them. */
export type NamedScripts = {
  readonly names: readonly string[];
  /** The executed argument, if known, for programs that can also run a folder. */
  readonly script?: string | undefined;
  readonly unknown: readonly string[];
};

const SHELLS = "sh bash dash ash zsh ksh rbash mksh lksh posh yash fish";
const SOURCES = "source .";
const OTHERS =
  "python pypy node nodejs deno bun tsx ts-node perl ruby php lua luajit Rscript tclsh expect pwsh java julia";
const OF_THEIR_OWN = "awk gawk mawk nawk make gmake go";

/** Programs that run files named by their arguments. */
const INTERPRETERS = setOf(`${SHELLS} ${SOURCES} ${OTHERS} ${OF_THEIR_OWN}`);

/** Programs that execute their standard input when no file is named. */
const RUN_INPUT = setOf(`${SHELLS} ${OTHERS}`);

const SHELL = setOf(SHELLS);

/** Programs that also search PATH for a name without a slash. */
const LOOK_IN_PATH = setOf(`${SHELLS} ${SOURCES}`);

/** Options followed by code: `-c`, `-le`. */
const CODE = /^(-[A-Za-z]*[cep]|--eval|--print|--command)$/;

/** Options whose next word may be a value; otherwise the next word is the script. */
const VALUE = /^(--[^=]+|-[A-Za-z]*[oOWXrIdlCK]|-cp|-classpath)$/;

/** Programs whose script follows a subcommand: `go run main.go`. */
const WITH_SUBCOMMANDS = setOf("go deno bun");

const LOOKS_ONLY = /^(--version|--help|-V)$/;

/** `node build` runs build.js. */
const ENDINGS = [".js", ".json", ".node", ".ts", ".py"];

export function isInterpreter(program: string): boolean {
  return INTERPRETERS.has(plain(program));
}

export function looksInPath(program: string): boolean {
  return LOOK_IN_PATH.has(plain(program));
}

/** `isInputKnown`: without a redirect the program reads the call's own input, which an answer is bound to. */
export function scriptsOf(command: SimpleCommand, isInputKnown: boolean): NamedScripts {
  const [program, ...rest] = command.words;
  const name = plain(program?.text ?? "");
  const script = rest.findIndex((word, at) => isScript(name, word, rest[at - 1]));
  const before = script === -1 ? rest : rest.slice(0, script);
  const guessed = before.filter(({ kind }) => kind !== "literal");
  const literal = rest.filter(({ kind }) => kind === "literal").map(({ text }) => text);
  const inputs = command.redirects.filter(({ operator }) => operator.startsWith("<"));
  const guessedInput = inputs.filter(({ target }) => target !== null && target.kind !== "literal");
  const readsInput =
    script === -1 || (SHELL.has(name) && before.some(({ text }) => /^-[A-Za-z]*s/.test(text)));
  const isFed = readsInput && RUN_INPUT.has(name) && !literal.some((text) => LOOKS_ONLY.test(text));
  return {
    script: RUN_INPUT.has(name) ? rest[script]?.text : undefined,
    names: [
      ...literal.flatMap((text, at) => spellings(text, literal[at - 1])),
      ...inputs.flatMap(({ target }) => (target?.kind === "literal" ? [target.text] : [])),
    ],
    unknown: [
      ...guessed.map(
        ({ raw }) => `'${name}' may run '${raw}', whose value is only known when the command runs`,
      ),
      ...(isFed && (guessedInput.length > 0 || (inputs.length === 0 && !isInputKnown))
        ? [`'${name}' runs its input, which is only known when the command runs`]
        : []),
    ],
  };
}

/** Files that any program may be told to run: `git bisect run ./x`, `git -c core.pager=./x`. */
export function optionValues(text: string): readonly string[] {
  const equals = text.indexOf("=");
  const attached = /^-[^-]./.test(text) ? [text.slice(2)] : [];
  return [...(text.startsWith("-") ? attached : [text]), ...(equals > 0 ? [text.slice(equals + 1)] : [])];
}

/** Whether the word is the script; otherwise a later word may be the script. */
function isScript(name: string, { kind, text }: CommandWord, previous: CommandWord | undefined): boolean {
  if (kind !== "literal" || /^[-+]/.test(text)) return false;
  if (previous === undefined) return !WITH_SUBCOMMANDS.has(name);
  return CODE.test(previous.text) || !VALUE.test(previous.text);
}

function spellings(text: string, previous: string | undefined): readonly string[] {
  const values = optionValues(text).filter((value) => value !== "");
  const module = previous === "-m" ? [text.replaceAll(".", "/")] : [];
  const bare = text.startsWith("-") ? [] : [...values, ...module];
  const inside = module.flatMap((path) => [`${path}/__main__.py`, `${path}/__init__.py`]);
  return [...values, ...bare.flatMap((path) => ENDINGS.map((ending) => `${path}${ending}`)), ...inside];
}

function plain(program: string): string {
  return basename(program).replace(/[0-9.]+$/, "") || ".";
}

function setOf(names: string): ReadonlySet<string> {
  return new Set(names.split(" "));
}
