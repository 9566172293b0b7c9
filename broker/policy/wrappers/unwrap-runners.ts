import { type CommandWord, UNKNOWN_MARK } from "../words/command.ts";
import { type Inner, scriptOf } from "../words/inner.ts";
import {
  OPAQUE_PROGRAMS,
  OPAQUE_WORDS,
  OPERAND_RUNNERS,
  PACKAGE_RUNNERS,
  RUNNERS,
  type RunnerOptions,
  SUBCOMMANDS,
  type Subcommand,
} from "./runner-table.ts";
import { literalWord } from "../words/read-word.ts";
import { isSubstituted } from "../words/standard-input.ts";
import { hasUnknownName, mayBeOption, unknownOption } from "../words/unknown-options.ts";
import { optionValue } from "./unwrap-git.ts";
import { addedWords } from "./wrapper-options.ts";
import { unwrapWrapper } from "./unwrap-programs.ts";

const EDITORS: ReadonlySet<string> = new Set([
  "vim",
  "vi",
  "nvim",
  "view",
  "ex",
  "vimdiff",
  "gvim",
  "less",
  "more",
]);
/** `:!cmd`, `:silent !cmd`, `+!cmd`: the editor's own way to run a command. */
const BANG = /^\+?[:\s]*(sil(ent)?!?\s+)?!+\s*(.+)$/s;
const TERMINALS: ReadonlySet<string> = new Set([
  "xterm",
  "konsole",
  "gnome-terminal",
  "alacritty",
  "kitty",
  "urxvt",
]);
const TMUX_COMMAND =
  /^(new(-session|-window|w)?|neww|split(-window|w)|respawn-(pane|window)|run(-shell)?|if(-shell)?|(display-)?popup)$/;

/** `pnpm@9`, `poetry==1.8`, `pip[x]>=24`: the package's program has the package's name. */
const VERSIONED = /^([\w.-]+?)(?:\[[^\]]*\])?(?:@|[=<>!~]=|[<>])/;

/** Package managers that corepack starts; `enable`, `use` and other first words are subcommands of corepack. */
const OF_COREPACK = /^(?:npm|npx|pnpm|pnpx|yarn|yarnpkg)(?:@|$)/;

/** Returns the commands of programs other than wrappers, given behind a subcommand or in an option. */
export function unwrapRunner(name: string, words: readonly CommandWord[]): Inner[] {
  const subcommand = SUBCOMMANDS.get(name);
  if (subcommand !== undefined) return withPlainNames(unwrapSubcommand(words, subcommand));
  const runner = PACKAGE_RUNNERS.get(name);
  if (runner !== undefined) return withPlainNames(unwrapWrapper(words, runner, "sh"));
  return [
    ...optionScripts(words, RUNNERS.get(name) ?? OPERAND_RUNNERS.get(name)),
    ...(OPERAND_RUNNERS.has(name) ? operandScripts(words, OPERAND_RUNNERS.get(name)) : []),
    ...unwrapOdd(name, words),
    ...opacity(name, words),
  ];
}

/**
 * Adds each command whose program carries a version under its name alone, which rules name. The command with its version stays:
 * what a rule allows by name is not what `pnpm@https://…` runs.
 */
function withPlainNames(inner: readonly Inner[]): Inner[] {
  return inner.flatMap((each): Inner[] => {
    const [program, ...rest] = each.kind === "words" ? each.words : [];
    const name = program === undefined ? undefined : VERSIONED.exec(program.text)?.[1];
    if (program === undefined || name === undefined) return [each];
    // `npm exec pnpm@9 -- install`
    const args = rest[0]?.text === "--" ? rest.slice(1) : rest;
    return [each, { ...each, kind: "words", words: [{ ...program, text: name }, ...args] }];
  });
}

function unwrapSubcommand(words: readonly CommandWord[], { globals, subcommands }: Subcommand): Inner[] {
  let at = 1;
  for (; at < words.length && words[at]?.text.startsWith("-") === true; at += 1)
    at += globals?.includes(words[at]?.text ?? "") === true ? 1 : 0;
  const named = words[at];
  const rest = words.length - 1 - at;
  if (named !== undefined && mayBeOption(named) && (rest > 0 || named.vanishes === true))
    return [unknownOption(named, words[0]?.text ?? "")];
  const name = named?.text ?? "";
  const options = Object.hasOwn(subcommands, name) ? subcommands[name] : undefined;
  return options === undefined ? [] : unwrapWrapper(words.slice(at), options, "sh");
}

function optionScripts(words: readonly CommandWord[], options: RunnerOptions | undefined): Inner[] {
  if (options === undefined) return [];
  const long = (options.long ?? []).map((name) => `--${name}`);
  return words.slice(1).flatMap((word, index) => {
    const next = words[index + 2];
    if (options.word?.includes(word.text) === true) return next === undefined ? [] : valueText(next);
    const attached = options.word?.find((one) => word.text.startsWith(`${one}=`));
    if (attached !== undefined) return valueText({ ...word, text: word.text.slice(attached.length + 1) });
    const value = word.text.startsWith("--")
      ? optionValue(long, word, next)
      : letterValue(word, next, options, index === 0);
    return value === undefined ? [] : valueScript(word, value, options);
  });
}

function valueScript(word: CommandWord, value: CommandWord, options: RunnerOptions): Inner[] {
  const prefix = Object.entries(options.prefix ?? {}).find(([name]) =>
    word.text.startsWith(`--${name}`),
  )?.[1];
  if (prefix === undefined) return valueText(value);
  return value.text.startsWith(prefix) ? valueText({ ...value, text: value.text.slice(prefix.length) }) : [];
}

/** Adds `"$@"`: many programs append words of their own. */
function valueText(value: CommandWord): Inner[] {
  return scriptOf([{ ...value, text: `${value.text} "$@"` }], "sh", "the option");
}

/** @param first `tar cfI out prog`: the first word may be letters without a dash, with their values in order behind. */
function letterValue(
  word: CommandWord,
  next: CommandWord | undefined,
  { short = "", values = "" }: RunnerOptions,
  first: boolean,
): CommandWord | undefined {
  if (!word.text.startsWith("-")) return first && short === "IF" ? bundled(word, next) : undefined;
  for (let at = 1; at < word.text.length; at += 1) {
    const letter = word.text[at] ?? "";
    const attached = word.text.slice(at + 1);
    if (letter === "\0") return { ...word, text: UNKNOWN_MARK };
    if (short.includes(letter)) return attached === "" ? next : { ...word, text: attached };
    if (values.includes(letter)) return undefined;
  }
  return undefined;
}

/** Returns an unknown word: the position of the program among the following words is not computed. */
function bundled(word: CommandWord, next: CommandWord | undefined): CommandWord | undefined {
  const isBundle = /^[a-zA-Z]+$/.test(word.text) && /[IF]/.test(word.text);
  return isBundle && next !== undefined ? { ...next, kind: "dynamic", text: "\0?" } : undefined;
}

function operandScripts(words: readonly CommandWord[], options: RunnerOptions | undefined): Inner[] {
  const letters = `${options?.short ?? ""}${options?.values ?? ""}`;
  const operands = words.slice(1).filter((word, index) => {
    const before = words[index]?.text ?? "";
    return (
      !word.text.startsWith("-") &&
      !(before.length === 2 && before.startsWith("-") && letters.includes(before[1] ?? ""))
    );
  });
  return operands.flatMap((word) => scriptOf([word], "sh", "the program"));
}

function unwrapOdd(name: string, words: readonly CommandWord[]): Inner[] {
  if (EDITORS.has(name)) return words.slice(1).flatMap((word) => bang(word));
  if (TERMINALS.has(name)) return wordsAfter(words, (word) => word.text === "-e" || word.text === "--");
  if (name === "gdb") return [...wordsAfter(words, (word) => word.text === "--args"), ...gdbShell(words)];
  if (name === "ip")
    return wordsAfter(words, (word, at) => words[at - 1]?.text === "exec" && word.text !== "");
  if (name === "cmake") return unwrapCmake(words);
  if (name === "corepack") return withPlainNames(wordsFrom(words, OF_COREPACK));
  if (name === "yarnpkg") return [{ kind: "words", words: [literalWord("yarn"), ...words.slice(1)] }];
  if (name === "screen") return unwrapWrapper(words, { shortValues: "cehpSstTX", lookups: "rRxX" }, "sh");
  if (name === "nix") return wordsAfter(words, (word) => /^(-c|--command)$/.test(word.text));
  // fd appends the files found.
  if (name === "fd" || name === "fdfind")
    return wordsAfter(words, (word) => /^(-[a-zA-Z]*[xX]|--exec(-batch)?)$/.test(word.text), [addedWords()]);
  if (name === "start-stop-daemon") return unwrapDaemon(words);
  if (name === "jobs") return unwrapJobs(words);
  if (name === "make" || name === "gmake") return unwrapMake(words);
  return name === "tmux" ? unwrapTmux(words) : [];
}

const DAEMON_VALUES = "xancgsuprRNPIkdO";
const DAEMON_LONG_VALUES =
  /^--(pidfile|exec|name|startas|user|chuid|group|signal|retry|chroot|chdir|nicelevel|procsched|iosched|umask|ppid|pid|output|notify-timeout)$/;

/** Reads `start-stop-daemon -S -x FILE -- WORDS`; `--startas FILE` overrides the file to start. */
function unwrapDaemon(words: readonly CommandWord[]): Inner[] {
  const programs: CommandWord[] = [];
  const args: CommandWord[] = [];
  for (let at = 1; at < words.length; at += 1) {
    const word = words[at];
    if (word === undefined) break;
    const { text } = word;
    const next = words[at + 1];
    if (text === "--") {
      args.push(...words.slice(at + 1));
      break;
    }
    if (/^(--sto|--stat|-[a-zA-Z]*K)/.test(text)) return [];
    if (!/^-./.test(text)) args.push(word);
    else if (text.startsWith("--")) {
      const isProgram = /^--(e|starta)/.test(text);
      const equals = text.indexOf("=");
      const value = equals < 0 ? next : { ...word, text: text.slice(equals + 1) };
      if (isProgram && value !== undefined) programs.push(value);
      at += equals < 0 && (isProgram || DAEMON_LONG_VALUES.test(text)) ? 1 : 0;
    } else {
      const letter = [...text].findIndex((one, index) => index > 0 && DAEMON_VALUES.includes(one));
      if (letter < 0) continue;
      const attached = text.slice(letter + 1);
      const value = attached === "" ? next : { ...word, text: attached };
      if ("xa".includes(text[letter] ?? "") && value !== undefined) programs.push(value);
      at += attached === "" ? 1 : 0;
    }
  }
  return programs.map((program) => ({ kind: "words", words: [program, ...args] }));
}

/** Reads `jobs -x CMD`: bash runs the command, with job numbers replaced. */
function unwrapJobs(words: readonly CommandWord[]): Inner[] {
  const all = words.slice(1);
  const count = all.findIndex((word) => !/^-[a-z]/.test(word.text));
  const options = count < 0 ? all : all.slice(0, count);
  const rest = count < 0 ? [] : all.slice(count);
  const unknown = [...options, ...rest.slice(0, 1)].find((word) => mayBeOption(word) || hasUnknownName(word));
  if (unknown !== undefined) return [unknownOption(unknown, "jobs")];
  const inner = rest[0]?.text === "--" ? rest.slice(1) : rest;
  const runs = options.some((option) => option.text.includes("x"));
  return runs && inner.length > 0 ? [{ kind: "words", words: inner }] : [];
}

/** `make -f <(…)`: the makefile comes from another command of the line. */
function unwrapMake(words: readonly CommandWord[]): Inner[] {
  const file = words.find((word) => isSubstituted(word));
  return file === undefined
    ? []
    : [
        {
          kind: "opaque",
          reason: `'make ${file.raw}' runs a makefile that another command makes, and that cannot be checked`,
        },
      ];
}

/** `cmake -E env A=1 CMD`, `-E time CMD`, `-E chdir FOLDER CMD`. */
function unwrapCmake(words: readonly CommandWord[]): Inner[] {
  const [tool, ...rest] = words.slice(words.findIndex((word) => word.text === "-E") + 1);
  if (tool === undefined || !/^(env|time|chdir)$/.test(tool.text)) return [];
  return tool.text === "chdir"
    ? unwrapWrapper([tool, ...rest], { operands: [/^/] }, "sh")
    : [{ kind: "words", words: [tool, ...rest] }];
}

function bang(word: CommandWord): Inner[] {
  const script = BANG.exec(word.text)?.[3];
  return script === undefined ? [] : scriptOf([{ ...word, text: script }], "sh", "the editor");
}

function gdbShell(words: readonly CommandWord[]): Inner[] {
  return words.flatMap((word) => {
    const script = /^(?:shell|!)\s*(.+)$/s.exec(word.text)?.[1];
    return script === undefined ? [] : scriptOf([{ ...word, text: script }], "sh", "gdb");
  });
}

function wordsAfter(
  words: readonly CommandWord[],
  isLast: (word: CommandWord, at: number) => boolean,
  added: readonly CommandWord[] = [],
): Inner[] {
  const at = words.findIndex(isLast);
  const rest = at < 0 ? [] : words.slice(at + 1);
  return rest.length === 0 ? [] : [{ kind: "words", words: [...rest, ...added] }];
}

function wordsFrom(words: readonly CommandWord[], program: RegExp): Inner[] {
  const at = words.findIndex((word, index) => index > 0 && !word.text.startsWith("-"));
  return program.test(words[at]?.text ?? "") ? [{ kind: "words", words: words.slice(at) }] : [];
}

function unwrapTmux(words: readonly CommandWord[]): Inner[] {
  const at = words.findIndex((word) => TMUX_COMMAND.test(word.text));
  if (at < 0) return [];
  const end = words.findIndex((word, index) => index > at && word.text === ";");
  const own = words.slice(at, end < 0 ? undefined : end);
  return unwrapWrapper(own, { shortValues: "cEeFfnstxylThw", joins: "" }, "sh");
}

/** `--e$xv`, `$x--ev` */
function isUnnamedLong(word: CommandWord): boolean {
  return word.text.startsWith(`${UNKNOWN_MARK}-`) || (word.text.startsWith("--") && hasUnknownName(word));
}

function opacity(name: string, words: readonly CommandWord[]): Inner[] {
  const what = OPAQUE_PROGRAMS.get(name);
  const shows = words.length > 1 && words.slice(1).every((word) => /^-[VQGLlc]/.test(word.text));
  if (what !== undefined && !shows) return [{ kind: "opaque", reason: `'${name}' ${what}` }];
  const patterns = OPAQUE_WORDS.get(name) ?? [];
  // `make --e$xv='$(shell y)'`
  const isLoader = name === "hash" || name === "enable";
  const unnamed =
    patterns.length === 0
      ? undefined
      : words.find((word) => isUnnamedLong(word) || (isLoader && mayBeOption(word)));
  if (unnamed !== undefined) return [unknownOption(unnamed, name)];
  const told = words.find((word, at) =>
    patterns.some(
      (one) => at > 0 && (one.test(word.text) || one.test(`${word.text} ${words[at + 1]?.text ?? ""}`)),
    ),
  );
  return told === undefined
    ? []
    : [{ kind: "opaque", reason: `'${name} ${told.raw}' may cause commands to run that cannot be checked` }];
}
