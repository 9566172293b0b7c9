/**
 * The shell reader's result: every simple command that a command line can run, in source order, with the known facts about its
 * words. Offsets are UTF-16 code units of the given text.
 */

/** A word after quote removal; a brace expansion or `$IFS` may have split a written word into several. */
export interface CommandWord {
  /** `literal`: exactly `text`. `glob`: has unquoted `*`, `?`, `[…]`. `dynamic`: partly unknown before the run. */
  readonly kind: "literal" | "glob" | "dynamic";
  /** Dequoted; `HOME_MARK` stands for the home folder, `UNKNOWN_MARK` for an unknown part. */
  readonly text: string;
  /** The source text, quotes included. */
  readonly raw: string;
  /** Only unquoted expansions (`$x`, `$(…)`) or an empty part of a brace: may become no word, or several. */
  readonly vanishes?: true;
  /** The words that this one may be where operands count (`${x:-…}`): a list for each reading, the first with all operands. */
  readonly otherwise?: readonly (readonly CommandWord[])[];
}

/** Both marks begin with NUL, which cannot occur in a real word. */
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
 * When a shell reaches a command. `always`: every time, unless the shell ends before. `last`: the same, in the last statement.
 * `success`: when the line's exit code is 0. `chain`: when the commands before succeed (`&&`). `failure`: when the command before
 * fails (`||`). `maybe`: other commands decide.
 */
export type Reach = "always" | "last" | "success" | "chain" | "failure" | "maybe";

export interface SimpleCommand {
  /** Program word first; empty for a command of assignments or redirects alone. */
  readonly words: readonly CommandWord[];
  readonly assignments: readonly CommandAssignment[];
  readonly redirects: readonly CommandRedirect[];
  /** The command's source text (at most 512 characters). */
  readonly fragment: string;
  /** Offset of the command in the given text; for a command inside a wrapper or a string, the offset of the outer command. */
  readonly start: number;
  readonly end: number;
  /** The enclosing compound commands and substitutions, outermost first: `if`, `( )`, `$( )`. */
  readonly inside: readonly string[];
  /** 0 for the command line itself, plus 1 for each enclosing wrapper or `sh -c` string. */
  readonly depth: number;
  /** Literal targets of the earlier `cd` commands in the same shell; `null` when a target is unknown. */
  readonly moves: readonly string[] | null;
  /** Absent: always. Says nothing of a command inside a wrapper or a string. */
  readonly reach?: Reach;
  /** The line is a single pipeline, or several joined by `&&`, and fails when this command fails. */
  readonly decides?: true;
  /** A second reading, without the words that may vanish: only refusing rules are matched against the reading. */
  readonly reduced?: true;
}

/** A place in the command whose program or script stays unknown until the run. */
export interface OpaqueSpot {
  readonly fragment: string;
  /** A sentence: "The program is only known when the command runs: '$x'". */
  readonly reason: string;
}

/** A stage of a pipeline: indexes into `fragments`, everything inside the stage included. */
export type PipelineStage = readonly number[];

/** Opaque if the value of a named variable begins with a dash or splits into several words. */
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
  /** The first pipe, list, redirect, substitution or compound command, as written; `null` without an operator. */
  readonly operator: string | null;
  /** Variables set by loops. */
  readonly loops?: readonly string[];
  /** True when the parse failed or a limit was exceeded: `fragments` may be incomplete. */
  readonly incomplete: boolean;
  /** Opaque if the caller sets such a variable. */
  readonly doubts?: readonly Doubt[];
}
