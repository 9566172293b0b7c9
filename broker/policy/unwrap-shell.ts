import type { CommandWord } from "./command.ts";
import { asShellText, type Inner, type Input, type ShellLanguage, scriptOf } from "./inner.ts";
import { NEAR_SHELLS } from "./shell-table.ts";
import { isSubstituted } from "./standard-input.ts";
import { UNSURE } from "./unwrap-programs.ts";

const LATE: Inner = { kind: "opaque", reason: "The shell's script is only known when it runs" };
const STANDARD_INPUT: ReadonlySet<string> = new Set(["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"]);
const OPEN_FILE = /^\/(dev\/fd\/|proc\/[^/]+\/(task\/[^/]+\/)?fd\/)/;

/** `sh [options] -c STRING`, `sh FILE`, and a shell that reads its script from its input. */
export function unwrapShell(
  words: readonly CommandWord[],
  name: string,
  shell: ShellLanguage,
  input: Input,
): Inner[] {
  const own = readOptions(words);
  if (own === null) return [{ kind: "opaque", reason: "The shell's options are only known when it runs" }];
  if (own.shows) return [];
  const found = scriptsOf(words, own, shell, input);
  const near: Inner = {
    kind: "opaque",
    reason: `'${name}' reads some commands otherwise than is known here`,
  };
  return NEAR_SHELLS.has(name) ? [...found, near] : found;
}

interface ShellWords {
  readonly operand: number;
  readonly isString: boolean;
  readonly fromInput: boolean;
  /** `--version`: nothing is run. */
  readonly shows: boolean;
}

/** Null when an option is not known. */
function readOptions(words: readonly CommandWord[]): ShellWords | null {
  let [isString, fromInput, shows] = [false, false, false];
  let at = 1;
  for (; at < words.length; at += 1) {
    const word = words[at];
    if (word === undefined || !/^[-+]./.test(word.text)) break;
    if (word.text === "--") {
      at += 1;
      break;
    }
    if (word.kind !== "literal") return null;
    if (word.text.startsWith("--")) {
      at += /^--(rcfile|init-file)$/.test(word.text) ? 1 : 0;
      shows ||= /^--(version|help)$/.test(word.text);
      continue;
    }
    isString ||= word.text.startsWith("-") && word.text.includes("c");
    fromInput ||= word.text.startsWith("-") && word.text.includes("s");
    at += /[oO]$/.test(word.text) ? 1 : 0;
  }
  return { operand: at, isString, fromInput, shows };
}

function scriptsOf(
  words: readonly CommandWord[],
  own: ShellWords,
  shell: ShellLanguage,
  input: Input,
): Inner[] {
  const operand = words[own.operand];
  if (own.isString) return operand === undefined ? [] : scriptOf([operand], shell, "the shell");
  if (operand === undefined || own.fromInput || STANDARD_INPUT.has(operand.text))
    return inputScript(input, shell);
  // `sh $x -c …`: a file with a word `-c`, or a string.
  const later = words.slice(own.operand + 1);
  if (operand.vanishes === true && later.some((word) => /^-[a-zA-Z]*c/.test(word.text))) return [UNSURE];
  return isUnknownFile(operand) ? [LATE] : [];
}

/** `. FILE`, `source FILE`. */
export function unwrapSource(words: readonly CommandWord[], shell: ShellLanguage, input: Input): Inner[] {
  const file = words.slice(1).find((word) => word.text !== "--");
  if (file === undefined) return [];
  if (STANDARD_INPUT.has(file.text)) return inputScript(input, shell);
  return isUnknownFile(file) ? [LATE] : [];
}

/** A file that lies on the disk is as good as a program; what another command is just writing is not. */
function isUnknownFile(operand: CommandWord): boolean {
  return isSubstituted(operand) || operand.raw === "…" || OPEN_FILE.test(operand.text);
}

function inputScript(input: Input, shell: ShellLanguage): Inner[] {
  if (input === null) return [LATE];
  if (input === "file") return [];
  const script: Inner = { kind: "script", text: asShellText(input.text), shell };
  return input.certain ? [script] : [script, LATE];
}
