import {
  type CommandWord,
  type Doubt,
  type OpaqueSpot,
  type SimpleCommand,
  UNKNOWN_MARK,
} from "../words/command.ts";
import { baseName, type Input } from "../words/inner.ts";
import { languageOf } from "./shell-table.ts";
import { mayMakeOptions, partOf } from "../words/unknown-options.ts";
import { DECLARING, evaluates, expandsLate, runsInSubscript } from "./unwrap-builtins.ts";
import { isCodeVariable } from "./variable-table.ts";

/** Builtins that read a variable's value from input, with their option letters that take a word. */
const READERS: ReadonlyMap<string, string> = new Map([
  ["read", "dinNptu"],
  ["mapfile", "dnOsucC"],
  ["readarray", "dnOsucC"],
]);
/** Variables that bash expands as prompts. */
const PROMPT = /^PS[0-4]$/;
/** A dollar or a backquote as `printf` decodes it. */
const DECODED = /\\(?:x24|0?44|u0*24|U0*24|x60|0?140|u0*60|U0*60)/;
const NAME = /^[A-Za-z_]\w*/;
const NAMES = /[A-Za-z_]\w*/g;
const SUBSTITUTION = /\$\(|`/;

/**
 * Finds values that bash runs although no word of the command says so: arithmetic expands subscripts in the values of variables
 * (`read x; echo $((x))`), and builtins and loops set variables with code (`for PS4 in …`). Searches the whole text, whatever the
 * order: a new instance for each reading.
 */
export class Setters {
  /** Variables set by loops. */
  readonly looped = new Set<string>();
  /** Names in arithmetic. */
  readonly #computed = new Set<string>();
  /** Variables with values from input, by name; the value is the setting fragment. */
  readonly #outside = new Map<string, string>();
  readonly #spots: OpaqueSpot[] = [];
  readonly doubts: Doubt[] = [];
  /** Variables with options, several words, or unknown values. */
  readonly #loose = new Set<string>();
  /** Literal text that arithmetic would run. */
  #payload: string | undefined;
  /** Literal text that a subscript would run. */
  #text: string | undefined;
  #computes = false;
  #subscripts = false;
  #reference: string | undefined;
  readonly #arrays = new Set<string>();
  /** Variables that a builtin gives a value only known when the command runs, by name; the value is the setting fragment. */
  readonly #redeclared = new Map<string, string>();
  /** A word that bash expands once more, and that is only known when the command runs. */
  #late: string | undefined;
  /** What assignments and appends have brought so far, by name. */
  readonly #made = new Map<string, { readonly hasBracket: boolean; readonly endsInDollar: boolean }>();

  /** @param values the variable's values in order; empty: unknown values. */
  addLoop(name: string, values: readonly CommandWord[]): void {
    this.looped.add(name);
    this.#set(name, `for ${name}`);
    this.#addValues(name, values);
    for (const value of values) if (value.kind === "literal") this.#lookAt(value.text, `for ${name}`);
  }

  /** A function has its own arguments. */
  addFunction(): void {
    this.#loose.add("@");
  }

  addDoubt(doubt: Doubt): void {
    this.doubts.push(doubt);
  }

  addArithmetic(text: string): void {
    this.#computes = true;
    // `a[$k]`: bash expands the value of k, and then the resulting subscript again.
    this.#subscripts ||= /\[.*\$/s.test(text);
    for (const name of text.match(NAMES) ?? []) this.#computed.add(name);
  }

  /** Something that bash computes, whose names are not known: an index, or the name behind `unset`. */
  addComputed(): void {
    this.#computes = true;
  }

  /** An expansion that puts a dollar or a backquote into a value. */
  addReplaced(text: string): void {
    this.#lookAt("[$(", text);
  }

  addArray(name: string): void {
    this.#arrays.add(name);
  }

  /** @param text `[[ … ]]` as written. */
  addTest(text: string): void {
    if (/\s-(eq|ne|lt|le|gt|ge|v|R)\s/.test(text)) this.addArithmetic(text.slice(2));
  }

  addCommand(command: SimpleCommand, input: Input): void {
    this.#look(command, input);
    for (const { name, value } of [...command.assignments, ...declared(command.words)]) {
      this.#addValues(name, [value]);
      this.#addMade(name, value, command.fragment);
      if (PROMPT.test(name) && value.kind === "dynamic") this.#late ??= command.fragment;
    }
    const [program, ...words] = command.words;
    if (program?.kind !== "literal") return;
    if (expandsLate(program.text, command.words)) this.#late ??= command.fragment;
    if (program.text === "set" || (languageOf(baseName(program.text)) !== undefined && words.length > 3))
      this.#loose.add("@");
    if (program.text === "unset" && words.some(isNameMade)) this.addComputed();
    const letters = READERS.get(program.text);
    if (letters !== undefined) this.#addReader(command, letters, input);
    else if (program.text === "printf") this.#addPrinted(command);
    else if (program.text === "getopts") this.#addName(words[1], command);
    else if (program.text === "let") this.addArithmetic(words.map(({ text }) => text).join(" "));
    else if (DECLARING.has(program.text)) this.#addDeclared(command);
  }

  spots(commands: readonly SimpleCommand[]): OpaqueSpot[] {
    const spots = [...this.#spots];
    const tell = (fragment: string, reason: string): void => void spots.push({ fragment, reason });
    const outside = [...this.#outside].find(([name]) => this.#computed.has(name));
    if (outside !== undefined)
      tell(
        outside[1],
        `Arithmetic runs substitutions in the value of '${outside[0]}', which is only known when the command runs`,
      );
    if (this.#computes && this.#payload !== undefined)
      tell(
        this.#payload,
        "Arithmetic would run the substitution in this text if the text were the value of a variable",
      );
    else if (this.#subscripts && this.#text !== undefined)
      tell(
        this.#text,
        "A subscript would run the substitution in this text if the text were the value of a variable",
      );
    for (const { fragment, reason, names } of this.doubts)
      if (names.some((name) => this.#loose.has(name))) tell(fragment, reason);
    // `a=(); y='($(x))'; declare a="$y"`: as with 'declare -a', the value is a list.
    for (const [name, fragment] of this.#redeclared) if (this.#arrays.has(name)) this.#late ??= fragment;
    if (this.#late !== undefined && this.#text !== undefined)
      tell(
        this.#late,
        "bash expands the value once more, and would run the substitution that the text contains",
      );
    if (this.#reference !== undefined && this.#payload !== undefined)
      tell(this.#reference, "A name reference to an array runs the substitution in its subscript");
    const named = this.#reference === undefined ? undefined : commands.find(namesCode);
    if (this.#reference !== undefined && named !== undefined)
      tell(
        this.#reference,
        `A name reference may set a variable that programs run code from, such as the one named in '${named.fragment}'`,
      );
    return spots;
  }

  #look(command: SimpleCommand, input: Input): void {
    const { words, assignments, redirects, fragment } = command;
    const program = words[0]?.text ?? "";
    // The reader has already read such arguments as commands.
    const isRead = (text: string): boolean => evaluates(program) && runsInSubscript(text);
    const targets = redirects.flatMap(({ target }) => (target === null ? [] : [target]));
    for (const word of [...words, ...targets])
      if (word.kind === "literal" && !isRead(word.text)) this.#lookAt(word.text, fragment);
    for (const { value } of assignments)
      if (value.kind === "literal" && !runsInSubscript(value.text)) this.#lookAt(value.text, fragment);
    if (input !== null && input !== "file" && redirects.length > 0) this.#lookAt(input.text, fragment);
  }

  #lookAt(text: string, fragment: string): void {
    if (this.#text !== undefined && this.#payload !== undefined) return;
    if (!SUBSTITUTION.test(text)) return;
    this.#text ??= fragment;
    if (runsInSubscript(text, true)) this.#payload ??= fragment;
  }

  /** `x='a['; x+='$(y)]'`, `PS4='$'; PS4+='(y)'`: no part is a substitution by itself. */
  #addMade(name: string, value: CommandWord, fragment: string): void {
    const { kind, text } = value;
    if (kind !== "literal" || text === "") return;
    const before = this.#made.get(name);
    const hasBracket = before?.hasBracket === true || text.includes("[");
    this.#made.set(name, { hasBracket, endsInDollar: text.endsWith("$") });
    const isMade = SUBSTITUTION.test(text) || (before?.endsInDollar === true && text.startsWith("("));
    if (before === undefined || !isMade) return;
    this.#lookAt(hasBracket ? "[$(" : "$(", fragment);
    if (PROMPT.test(name)) this.#late ??= fragment;
  }

  /** Notes whether a value, or a part of one, may become options. Without values they are unknown. */
  #addValues(name: string, values: readonly CommandWord[]): void {
    const areUnknown = values.length === 0 || values.some(mayBecomeOptions);
    if (areUnknown) this.#loose.add(name);
    if (areUnknown || values.some(({ text, kind }) => kind === "glob" || /[-+]/.test(text)))
      this.#loose.add(partOf(name));
  }

  #addReader(command: SimpleCommand, letters: string, input: Input): void {
    const names = namesRead(command.words, letters);
    const isKnown = input === "file" || input?.certain === true;
    for (const word of names) {
      this.#addName(word, command);
      const name = NAME.exec(word.text)?.[0];
      if (name !== undefined && !isKnown) this.#outside.set(name, command.fragment);
    }
    if (!isKnown && names.length === 0)
      this.#outside.set(command.words[0]?.text === "read" ? "REPLY" : "MAPFILE", command.fragment);
  }

  #addPrinted({ words, fragment }: SimpleCommand): void {
    const at = words.findIndex((word) => word.text.startsWith("-v"));
    const option = words[at];
    if (at !== 1 || option === undefined) return;
    const name = option.text === "-v" ? words[2] : { ...option, text: option.text.slice(2) };
    this.#addName(name, { fragment });
    if (words.some(({ text }) => DECODED.test(text))) this.#lookAt("[$(", fragment);
  }

  #addDeclared(command: SimpleCommand): void {
    const [program, ...words] = command.words;
    for (const word of words) {
      if (word.text.startsWith(UNKNOWN_MARK)) {
        // `declare "$x=$y"`: x may be a prompt, or a name with a subscript.
        if (SUBSTITUTION.test(word.text)) this.#addName(word, command);
        else this.#late ??= command.fragment;
      }
      const name = /^([A-Za-z_]\w*)(?:\[|\+=)/.exec(word.text)?.[1];
      if (name !== undefined) this.#set(name, command.fragment);
      const valued = word.kind === "dynamic" ? /^([A-Za-z_]\w*)\+?=(?!\()/.exec(word.text)?.[1] : undefined;
      if (valued !== undefined && program?.text !== "local") this.#redeclared.set(valued, command.fragment);
    }
    if (program?.text === "export" || program?.text === "readonly") return;
    const options = words.filter((word) => /^[-+]/.test(word.text)).map(({ text }) => text);
    if (options.some((text) => /^-[a-zA-Z]*[aA]/.test(text)))
      for (const { text } of words) this.addArray(NAME.exec(text)?.[0] ?? "");
    if (options.some((text) => /^-[a-zA-Z]*n/.test(text))) {
      this.#reference ??= command.fragment;
      for (const word of words) if (word.text.includes("=")) this.#addName(valueOf(word), command, false);
      for (const word of words) this.#addName(word, command, false);
    }
    if (options.some((text) => /^-[a-zA-Z]*i/.test(text)))
      this.addArithmetic(words.map(({ text }) => text).join(" "));
  }

  /** @param mustBeKnown an unknown name is opaque. */
  #addName(
    word: CommandWord | undefined,
    { fragment }: Pick<SimpleCommand, "fragment">,
    mustBeKnown = true,
  ): void {
    if (word === undefined) return;
    const name = NAME.exec(word.text)?.[0];
    if (name !== undefined) {
      this.#loose.add(name);
      this.#set(name, fragment);
    }
    if (name === undefined && mustBeKnown && word.text.startsWith(UNKNOWN_MARK))
      this.#spots.push({
        fragment,
        reason: `The variable named by '${word.raw}' is only known when the command runs`,
      });
  }

  #set(name: string, fragment: string): void {
    if (isCodeVariable(name))
      this.#spots.push({
        fragment,
        reason: `The command sets ${name}, which makes programs run commands or load code`,
      });
  }
}

/** `unset "$1"`, `unset "x[$1]"`: other variables' values are known, or come from outside of the text. */
function isNameMade({ kind, raw }: CommandWord): boolean {
  return kind === "dynamic" && /\$\{?[\d@*]/.test(raw);
}

/** Returns the names behind the options, and the name given by `-a`. */
function namesRead(words: readonly CommandWord[], letters: string): CommandWord[] {
  let at = 1;
  const names: CommandWord[] = [];
  for (; at < words.length; at += 1) {
    const word = words[at];
    if (word?.text.startsWith("-") !== true || word.text === "--") break;
    const option = [...word.text.slice(1)].findIndex((letter) => letters.includes(letter) || letter === "a");
    if (option < 0) continue;
    const next = words[at + 1];
    const isLast = option === word.text.length - 2;
    if (word.text[option + 1] === "a")
      names.push(
        ...(isLast
          ? [next].filter((one) => one !== undefined)
          : [{ ...word, text: word.text.slice(option + 2) }]),
      );
    at += isLast ? 1 : 0;
  }
  return [...names, ...words.slice(words[at]?.text === "--" ? at + 1 : at)];
}

function mayBecomeOptions(value: CommandWord): boolean {
  if (value.kind === "literal") return mayMakeOptions(value.text);
  // `*.sh` matches names with a dot, which no option letters contain.
  return value.kind === "dynamic" || /^[*?[][\w-]*$/.test(value.text);
}

/** `export x=-c` */
function declared([program, ...words]: readonly CommandWord[]): { name: string; value: CommandWord }[] {
  if (program === undefined || !DECLARING.has(program.text)) return [];
  return words.flatMap((word) => {
    const name = /^([A-Za-z_]\w*)\+?=/.exec(word.text)?.[1];
    return name === undefined ? [] : [{ name, value: valueOf(word) }];
  });
}

function valueOf(word: CommandWord): CommandWord {
  return { ...word, text: word.text.slice(word.text.indexOf("=") + 1) };
}

function namesCode({ words, assignments }: SimpleCommand): boolean {
  return [...words, ...assignments.map(({ value }) => value)].some(({ text }) => {
    const name = /^(?:\w+=)?([A-Za-z_]\w*)(?:\[.*)?$/s.exec(text)?.[1];
    return name !== undefined && isCodeVariable(name);
  });
}
