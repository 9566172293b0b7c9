import { type CommandAssignment, type CommandWord, HOME_MARK, UNKNOWN_MARK } from "./command.ts";

export type ShellLanguage = "sh" | "bash";

/** What a simple command runs besides its own program. */
export type Inner =
  | {
      readonly kind: "words";
      readonly words: readonly CommandWord[];
      readonly folder?: CommandWord;
      /** Variables that it starts with beyond those of the command around it (`env A=1`). */
      readonly assignments?: readonly CommandAssignment[];
    }
  | {
      readonly kind: "script";
      readonly text: string;
      readonly shell: ShellLanguage;
      /** Where it runs (`env -C`), when not where it is written. */
      readonly folder?: CommandWord;
    }
  /** With `names`: only where the command sets one of these variables. */
  | { readonly kind: "opaque"; readonly reason: string; readonly names?: readonly string[] };

/** Text that arrives on standard input from a here-document, a here-string or a pipe. */
export interface InputText {
  readonly text: string;
  /** False when expansions in it make the final text unknown. */
  readonly certain: boolean;
}

/** What a command finds on its standard input: a text, a file of the disk (as `sh FILE`), or null: nobody knows. */
export type Input = InputText | "file" | null;

/** Words as a script again: the marks become expansions, so that the next reading sees them the same way. */
export function scriptOf(words: readonly CommandWord[], shell: ShellLanguage, what: string): Inner[] {
  const text = words.map((word) => asShellText(word.text)).join(" ");
  const script: Inner = { kind: "script", text, shell };
  if (words.every((word) => word.kind !== "dynamic")) return [script];
  const late: Inner = {
    kind: "opaque",
    reason: `The text that ${what} runs is only known when the command runs`,
  };
  // Nothing of it is known: there is nothing to read, and `$_` is no word of the person who asks why.
  return words.every((word) => word.text === UNKNOWN_MARK) ? [late] : [script, late];
}

export function asShellText(text: string): string {
  return text.replaceAll(HOME_MARK, "$HOME").replaceAll(UNKNOWN_MARK, "$_");
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
