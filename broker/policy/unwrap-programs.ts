import { type CommandWord, UNKNOWN_MARK } from "./command.ts";
import { asShellText, type Inner, type InputText, type ShellLanguage, scriptOf } from "./inner.ts";
import { dynamicWord } from "./read-word.ts";
import type { WrapperOptions } from "./wrapper-table.ts";

const ASSIGNMENT = /^[A-Za-z_][A-Za-z0-9_]*=/;
const FIND_EXEC: ReadonlySet<string> = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

/** Where a wrapper's own words end. `script` is set by an option such as `env -S`. */
interface WrapperEnd {
  readonly program: number;
  readonly scripts: readonly CommandWord[];
  /** The string that `xargs -I` replaces. */
  readonly replace: string | null;
  readonly lookup: boolean;
  readonly folder: CommandWord | undefined;
  /** An operand of the wrapper's own may be none, or several. */
  readonly unsure: boolean;
}

const UNSURE: Inner = {
  kind: "opaque",
  reason: "Where the inner command begins is only known when the command runs",
};

export function unwrapWrapper(
  words: readonly CommandWord[],
  options: WrapperOptions,
  shell: ShellLanguage,
): Inner[] {
  const end = endOfWrapper(words, options);
  if (end.lookup) return [];
  const rest = words.slice(end.program);
  const place = end.folder === undefined ? {} : { folder: end.folder };
  if (end.scripts.length > 0) {
    const scripts = end.scripts.flatMap((script) => scriptOf([script, ...rest], shell, "the option"));
    return scripts.map((inner) => (inner.kind === "opaque" ? inner : { ...inner, ...place }));
  }
  const tail = options.appends === true ? [...rest, dynamicWord("…")] : rest;
  if (rest.length === 0) return [];
  const inner = tail.map((word) => replaced(word, options.appends === true ? (end.replace ?? "") : ""));
  return [{ kind: "words", words: inner, ...place }, ...(end.unsure ? [UNSURE] : [])];
}

function endOfWrapper(words: readonly CommandWord[], options: WrapperOptions): WrapperEnd {
  const scripts: CommandWord[] = [];
  let operands = options.operands ?? 0;
  let replace: string | null = null;
  let folder: CommandWord | undefined;
  let unsure = false;
  let at = 1;
  for (; at < words.length; at += 1) {
    const word = words[at];
    if (word === undefined) break;
    if (word.text === "--") {
      at += 1;
      break;
    }
    if (word.text.startsWith("-") || (word.text.startsWith("+") && operands > 0)) {
      const option = readOption(word, words[at + 1], options);
      if (option.lookup) return { program: words.length, scripts: [], replace, lookup: true, folder, unsure };
      if (option.script !== null) scripts.push(option.script);
      replace = option.replace ?? replace;
      folder = option.folder ?? folder;
      at += option.takesNext ? 1 : 0;
    } else if (options.assignments === true && ASSIGNMENT.test(word.text)) {
      // An assignment for the program: stepped over.
    } else if (operands > 0) {
      operands -= 1;
      unsure ||= word.vanishes === true;
    } else break;
  }
  // `timeout -- 5 rm`: operands that stand after the `--`.
  return {
    program: Math.min(at + (words[at - 1]?.text === "--" ? operands : 0), words.length),
    scripts,
    replace,
    lookup: false,
    folder,
    unsure,
  };
}

interface WrapperOption {
  readonly takesNext: boolean;
  readonly script: CommandWord | null;
  readonly replace: string | null;
  readonly lookup: boolean;
  readonly folder?: CommandWord | undefined;
}

function readOption(
  word: CommandWord,
  next: CommandWord | undefined,
  options: WrapperOptions,
): WrapperOption {
  return word.text.startsWith("--") ? readLong(word, next, options) : readShort(word, next, options);
}

function readLong(word: CommandWord, next: CommandWord | undefined, options: WrapperOptions): WrapperOption {
  const equals = word.text.indexOf("=");
  const name = word.text.slice(2, equals < 0 ? undefined : equals);
  const value = equals < 0 ? next : { ...word, text: word.text.slice(equals + 1) };
  // getopt takes unambiguous beginnings of a long option.
  const begins = (full: string): boolean => full.startsWith(name);
  const script = (options.scriptLong ?? []).some(begins) && value !== undefined ? value : null;
  const takes = equals < 0 && (script !== null || (options.longValues ?? []).some(begins));
  return {
    takesNext: takes,
    script,
    replace: name === "replace" ? (value?.text ?? "{}") : null,
    lookup: false,
    folder: options.folderLong?.startsWith(name) === true ? value : undefined,
  };
}

function readShort(word: CommandWord, next: CommandWord | undefined, options: WrapperOptions): WrapperOption {
  const none = { takesNext: false, script: null, replace: null, lookup: false };
  for (let at = 1; at < word.text.length; at += 1) {
    const letter = word.text[at] ?? "";
    if (options.lookups?.includes(letter) === true) return { ...none, lookup: true };
    const isScript = options.scriptShort === letter;
    if (!isScript && options.shortValues?.includes(letter) !== true) {
      if (options.appends === true && letter === "i")
        return { ...none, replace: word.text.slice(at + 1) || "{}" };
      continue;
    }
    const attached = word.text.slice(at + 1);
    const value = attached === "" ? next : { ...word, text: attached };
    return {
      takesNext: attached === "",
      script: isScript ? (value ?? null) : null,
      replace: letter === "I" ? (value?.text ?? "{}") : null,
      lookup: false,
      folder: options.folderShort === letter ? value : undefined,
    };
  }
  return none;
}

function replaced(word: CommandWord, mark: string): CommandWord {
  if (mark === "" || !word.text.includes(mark)) return word;
  return { kind: "dynamic", text: word.text.replaceAll(mark, UNKNOWN_MARK), raw: word.raw };
}

/** `sh [options] -c STRING`, and a shell that reads its script from a here-document. */
export function unwrapShell(
  words: readonly CommandWord[],
  shell: ShellLanguage,
  input: InputText | null,
): Inner[] {
  let command = false;
  let fromInput = false;
  let at = 1;
  for (; at < words.length; at += 1) {
    const word = words[at];
    if (word === undefined || !/^[-+]./.test(word.text)) break;
    if (word.text === "--") {
      at += 1;
      break;
    }
    if (word.kind !== "literal")
      return [{ kind: "opaque", reason: "The shell's options are only known when it runs" }];
    if (word.text.startsWith("--")) {
      at += /^--(rcfile|init-file)$/.test(word.text) ? 1 : 0;
      continue;
    }
    command ||= word.text.startsWith("-") && word.text.includes("c");
    fromInput ||= word.text.startsWith("-") && word.text.includes("s");
    at += /[oO]$/.test(word.text) ? 1 : 0;
  }
  const operand = words[at];
  if (command) return operand === undefined ? [] : shellString(operand, shell);
  const reads = operand === undefined || fromInput || operand.text === "-" || operand.text === "/dev/stdin";
  // `sh $x -c …`: a file with a word `-c`, or a string.
  if (operand?.vanishes === true && words.slice(at + 1).some((word) => /^-[a-zA-Z]*c/.test(word.text)))
    return [UNSURE];
  if (operand?.kind === "dynamic" && operand.raw === "…") {
    return [{ kind: "opaque", reason: "The shell's script is only known when it runs" }];
  }
  return reads && input !== null ? inputScript(input, shell) : [];
}

function shellString(operand: CommandWord, shell: ShellLanguage): Inner[] {
  return scriptOf([operand], shell, "the shell");
}

function inputScript(input: InputText, shell: ShellLanguage): Inner[] {
  const script: Inner = { kind: "script", text: asShellText(input.text), shell };
  return input.certain
    ? [script]
    : [script, { kind: "opaque", reason: "The shell's script is only known when it runs" }];
}

/** Each `-exec … ;` of find. `{}` is a file that find will name. */
export function unwrapFind(words: readonly CommandWord[]): Inner[] {
  const found: Inner[] = [];
  for (let at = 1; at < words.length; at += 1) {
    if (!FIND_EXEC.has(words[at]?.text ?? "")) continue;
    const start = at + 1;
    while (at + 1 < words.length && !endsExec(words, at + 1)) at += 1;
    const inner = words.slice(start, at + 1).map((word) => replaced(word, "{}"));
    if (inner.length > 0) found.push({ kind: "words", words: inner });
  }
  return found;
}

function endsExec(words: readonly CommandWord[], at: number): boolean {
  const text = words[at]?.text;
  return text === ";" || (text === "+" && words[at - 1]?.text === "{}");
}
