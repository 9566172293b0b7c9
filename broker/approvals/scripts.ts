/** What a program that runs files is told to run, as far as its words say it. */
import { basename } from "node:path";
import type { CommandWord, SimpleCommand } from "../policy/index.ts";

/** Words that may name a file that runs, or why they do not say it. */
export type NamedScripts = {
  readonly names: readonly string[];
  /** The one among them that runs, where that can be told, of a program that also runs a folder. */
  readonly script?: string | undefined;
  readonly unknown: readonly string[];
};

const SHELLS = "sh bash dash ash zsh ksh rbash mksh lksh posh yash fish";
const SOURCES = "source .";
const OTHERS =
  "python pypy node nodejs deno bun tsx ts-node perl ruby php lua luajit Rscript tclsh expect pwsh java julia";
const OF_THEIR_OWN = "awk gawk mawk make gmake go";

/** These run what their arguments name. */
const INTERPRETERS = setOf(`${SHELLS} ${SOURCES} ${OTHERS} ${OF_THEIR_OWN}`);

/** Of these, without a file among their words, what comes in is the script. */
const RUN_INPUT = setOf(`${SHELLS} ${OTHERS}`);

const SHELL = setOf(SHELLS);

/** A name without a slash is looked for in PATH too. */
const LOOK_IN_PATH = setOf(`${SHELLS} ${SOURCES}`);

/** The word behind it is text that runs: `-c`, `-le`. */
const CODE = /^(-[A-Za-z]*[cep]|--eval|--print|--command)$/;

/** The word behind it may be its value; else it is what runs. */
const VALUE = /^(--[^=]+|-[A-Za-z]*[oOWXrIdlCK]|-cp|-classpath)$/;

/** Behind it stands what runs: `go run main.go`. */
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

/** `alone`: the command is this program and nothing else, so that its input is the call's. */
export function scriptsOf(command: SimpleCommand, alone: boolean): NamedScripts {
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
      ...guessed.map(({ raw }) => `What '${raw}' stands for, which '${name}' may run, is only known then`),
      ...(isFed && guessedInput.length > 0
        ? [`What comes into '${name}', which runs it, is only known then`]
        : []),
      ...(isFed && inputs.length === 0 && !alone
        ? [`'${name}' runs what comes into it from the rest of the command`]
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

/** Whether no later word can be what runs. */
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
