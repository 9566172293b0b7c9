/**
 * What the shell reader hands on: every simple command that a command line can run, in source order, with what is
 * known about its words. Offsets are UTF-16 code units of the text that was given.
 */

/** One word after quotes are taken away; a brace expansion or `$IFS` may have made several of one written word. */
export interface CommandWord {
  /** `literal`: exactly `text`. `glob`: has unquoted `*`, `?`, `[…]`. `dynamic`: in part not known before it runs. */
  readonly kind: "literal" | "glob" | "dynamic";
  /** Dequoted; the home folder is `HOME_MARK` and what cannot be known is `UNKNOWN_MARK`. */
  readonly text: string;
  /** As it was written. */
  readonly raw: string;
  /** Nothing but unquoted expansions (`$x`, `$(…)`) or an empty part of a brace: may become no word, or several. */
  readonly vanishes?: true;
}

/** The two marks begin with NUL, which cannot occur in a real word. */
export const HOME_MARK = "\0H";
export const UNKNOWN_MARK = "\0?";

export const MAX_FRAGMENT_LENGTH = 512;

export interface CommandAssignment {
  readonly name: string;
  readonly value: CommandWord;
}

export interface CommandRedirect {
  /** As written: `>`, `>>`, `<`, `<>`, `>|`, `&>`, `&>>`, `>&`, `<&`, `<<`, `<<-`, `<<<`. */
  readonly operator: string;
  /** The target; `null` for here-documents. */
  readonly target: CommandWord | null;
}

/**
 * `always`: its line comes to it, unless something ends the shell before. `last`: the same, in the last statement. `success`: when
 * the line's exit code is 0. `chain`: when the commands before it succeed (`&&`). `failure`: when the one before it fails (`||`).
 * `maybe`: other commands decide.
 */
export type Reach = "always" | "last" | "success" | "chain" | "failure" | "maybe";

export interface SimpleCommand {
  /** Program word first; empty for a command of assignments or redirects alone. */
  readonly words: readonly CommandWord[];
  readonly assignments: readonly CommandAssignment[];
  readonly redirects: readonly CommandRedirect[];
  /** The text of this simple command as it was written (≤ 512 characters). */
  readonly fragment: string;
  /** Where it stands in the text that was given; inside a wrapper or a string, where that stands. */
  readonly start: number;
  readonly end: number;
  /** The compound commands and substitutions around it, outermost first: `if`, `( )`, `$( )`. */
  readonly inside: readonly string[];
  /** 0 for the command line itself, one more for each wrapper or `sh -c` string around it. */
  readonly depth: number;
  /** The literal `cd` targets that come before it in its shell; `null` when one of them cannot be known. */
  readonly moves: readonly string[] | null;
  /** Absent: always. Says nothing of a command inside a wrapper or a string. */
  readonly reach?: Reach;
  /** The line is one pipeline, or several joined by `&&`, and fails when this fails. */
  readonly decides?: true;
  /** A second reading, without the words that may vanish: rules that refuse are asked about it, no others. */
  readonly reduced?: true;
}

/** A place where something runs that cannot be known before it runs. */
export interface OpaqueSpot {
  readonly fragment: string;
  /** A sentence: "The program is only known when the command runs: '$x'". */
  readonly reason: string;
}

/** One stage of a pipeline: indexes into `fragments`, everything inside the stage included. */
export type PipelineStage = readonly number[];

/** Opaque if one of these variables is set to something that begins with a dash, or to several words. */
export interface Doubt extends OpaqueSpot {
  readonly names: readonly string[];
}

export interface ReadCommand {
  /** `shell`: read from a command string. `argv`: no shell. */
  readonly form: "shell" | "argv";
  readonly text: string;
  readonly fragments: readonly SimpleCommand[];
  readonly opaque: readonly OpaqueSpot[];
  /** Two or more stages each. `bash <(curl x)` and `eval "$(curl x)"` count as `curl x | bash`. */
  readonly pipelines: readonly (readonly PipelineStage[])[];
  /** The first pipe, list, redirect, substitution or compound command, as written; `null` when there is none. */
  readonly operator: string | null;
  /** Variables that loops set. */
  readonly loops?: readonly string[];
  /** True when the parse failed or a bound was passed, so that `fragments` may be incomplete. */
  readonly incomplete: boolean;
  /** Opaque if the caller gives such a variable. */
  readonly doubts?: readonly Doubt[];
}
