import { type CommandAssignment, type CommandWord, HOME_MARK, UNKNOWN_MARK } from "./command.ts";

export type ShellLanguage = "sh" | "bash";

/** A command or script that a simple command runs besides its own program. */
export type Inner =
  | {
      readonly kind: "words";
      readonly words: readonly CommandWord[];
      readonly folder?: CommandWord;
      /** Variables added to those of the outer command (`env A=1`). */
      readonly assignments?: readonly CommandAssignment[];
    }
  | {
      readonly kind: "script";
      readonly text: string;
      readonly shell: ShellLanguage;
      /** Its working directory (`env -C`), if different from the outer command's. */
      readonly folder?: CommandWord;
    }
  /** With `names`: only where the command sets a named variable. */
  | { readonly kind: "opaque"; readonly reason: string; readonly names?: readonly string[] };

/** Text on standard input from a here-document, a here-string or a pipe. */
export interface InputText {
  readonly text: string;
  /** False when expansions make the final text unknown. */
  readonly certain: boolean;
}

/** A command's standard input: a text, a file on disk (as `sh FILE`), or null for unknown input. */
export type Input = InputText | "file" | null;

/** Joins words into a script: the marks become expansions, which the next reading turns into marks again. */
export function scriptOf(words: readonly CommandWord[], shell: ShellLanguage, what: string): Inner[] {
  const text = words.map((word) => asShellText(word.text)).join(" ");
  const script: Inner = { kind: "script", text, shell };
  if (words.every((word) => word.kind !== "dynamic")) return [script];
  const late: Inner = {
    kind: "opaque",
    reason: `The text that ${what} runs is only known when the command runs`,
  };
  // All words are unknown: no text to read, and the `$_` of {@link asShellText} would mean nothing to a person who asks why.
  return words.every((word) => word.text === UNKNOWN_MARK) ? [late] : [script, late];
}

export function asShellText(text: string): string {
  return text.replaceAll(HOME_MARK, "$HOME").replaceAll(UNKNOWN_MARK, "$_");
}

export function baseName(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
