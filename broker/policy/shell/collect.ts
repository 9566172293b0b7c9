import {
  type CommandAssignment,
  type CommandRedirect,
  type CommandWord,
  HOME_MARK,
  MAX_FRAGMENT_LENGTH,
  type OpaqueSpot,
  type PipelineStage,
  type Reach,
  type ReadCommand,
  type SimpleCommand,
} from "../words/command.ts";
import { unmarked } from "../words/dash.ts";
import { otherReadings } from "../words/other-readings.ts";
import { MAX_FRAGMENTS, MAX_TEXT_IN_ALL, MAX_WRAPPERS } from "../words/read-limits.ts";
import type { Inner, Input, ShellLanguage } from "../words/inner.ts";
import { runsItsSubstitutions } from "../wrappers/shell-input.ts";
import { Setters } from "../wrappers/setters.ts";
import { unwrap } from "../wrappers/unwrap.ts";
import { unwrapVariables, variablesOf } from "../wrappers/unwrap-variables.ts";

export interface NewCommand {
  readonly words: readonly CommandWord[];
  readonly assignments: readonly CommandAssignment[];
  readonly redirects: readonly CommandRedirect[];
  readonly text: string;
  readonly start: number;
  readonly end: number;
  readonly depth: number;
  readonly moves: readonly string[] | null;
  /** The enclosing compound commands, outermost first. */
  readonly inside: readonly string[];
  readonly reach?: Reach;
  readonly decides?: true;
  readonly reduced?: true;
}

export interface CommandContext {
  readonly input: Input;
  readonly shell: ShellLanguage;
}

/** A script found inside text already read. */
export interface ScriptSource {
  readonly text: string;
  readonly shell: ShellLanguage;
  readonly depth: number;
  readonly moves: readonly string[] | null;
  /** Standard input of the script's commands. */
  readonly input: Input;
  /** Position of the script in the given text; null for the given text itself. */
  readonly place: { readonly start: number; readonly end: number } | null;
  readonly inside: readonly string[];
  /** The line fails when the script fails; absent: the line may go on. */
  readonly decides?: true;
  readonly reduced?: true;
}

export type ScriptReader = (collector: CommandCollector, source: ScriptSource) => void;

/** Gathers the commands of a reading, in source order. A new collector for each reading. */
export class CommandCollector {
  readonly #fragments: SimpleCommand[] = [];
  readonly #opaque: OpaqueSpot[] = [];
  readonly #pipelines: (readonly PipelineStage[])[] = [];
  #operator: string | null = null;
  #incomplete = false;
  #overfull = false;
  #parsed = 0;
  readonly setters = new Setters();
  readonly #readScript: ScriptReader;

  constructor(readScript: ScriptReader) {
    this.#readScript = readScript;
  }

  /** Whether the limit of commands is reached: reading stops, and the rest of the command is opaque. */
  get full(): boolean {
    return this.#fragments.length >= MAX_FRAGMENTS;
  }

  /** Counts text before parsing; returns a sentence when the total exceeds the limit. */
  refuseMore(text: string): string | null {
    this.#parsed += text.length;
    return this.#parsed > MAX_TEXT_IN_ALL
      ? `Commands inside commands (such as 'sh -c') may have at most ${MAX_TEXT_IN_ALL} characters in all; these have more`
      : null;
  }

  get size(): number {
    return this.#fragments.length;
  }

  /** Adds the command and everything that the command runs in turn, as written and without vanishing words. */
  addCommand(command: NewCommand, context: CommandContext): void {
    const readings = otherReadings(command.words);
    if (readings.length === 0) {
      this.#addReading(command, context, null);
      return;
    }
    const known = new Set<string>();
    this.#addReading(command, context, known);
    for (const words of readings)
      if (words[0]?.kind === "literal")
        this.#addReading({ ...command, words, reduced: true }, context, known);
  }

  /** @param known inner commands of the other reading of the same command, not read twice. Null: no other reading. */
  #addReading(command: NewCommand, context: CommandContext, known: Set<string> | null): void {
    if (this.full) {
      this.overflow(command.text);
      return;
    }
    const { text, ...rest } = command;
    const fragment = { ...rest, fragment: clip(text) };
    this.#fragments.push(fragment);
    this.setters.addCommand(fragment, context.input);
    this.#addInner(unwrapVariables(variablesOf(command.words, command.assignments)), command, context, known);
    const [program] = command.words;
    if (program === undefined) return;
    if (program.kind !== "literal") {
      this.addOpaque(
        text,
        `The program is only known when the command runs: '${clip(unmarked(program.raw))}'`,
      );
      return;
    }
    this.#addInner(unwrap(command.words, context.input, context.shell), command, context, known);
  }

  /** Adds the commands run by a construct that is no command (`[[ … ]]`). */
  addRun(found: readonly Inner[], command: NewCommand, context: CommandContext): void {
    this.#addInner(found, command, context, null);
  }

  #addInner(
    found: readonly Inner[],
    command: NewCommand,
    context: CommandContext,
    known: Set<string> | null,
  ): void {
    const fresh = known === null ? found : unknownAmong(found, known);
    if (fresh.length > 0 && command.depth >= MAX_WRAPPERS) {
      this.addUnread(
        command.text,
        `Commands inside commands are read at most ${MAX_WRAPPERS} levels deep; this one is deeper`,
      );
      return;
    }
    for (const inner of fresh) this.#runInner(inner, command, context);
  }

  #runInner(inner: Inner, command: NewCommand, context: CommandContext): void {
    if (inner.kind === "opaque") {
      if (inner.names === undefined) this.addOpaque(command.text, inner.reason);
      else this.setters.addDoubt({ fragment: clip(command.text), reason: inner.reason, names: inner.names });
      return;
    }
    const { start, end, inside } = command;
    const depth = command.depth + 1;
    const moves = movesTo(inner, command.moves);
    const more = {
      ...(command.decides === true ? { decides: command.decides } : {}),
      ...(command.reduced === true ? { reduced: command.reduced } : {}),
    };
    if (inner.kind === "script") {
      const { text, shell } = inner;
      const place = { start, end };
      this.#readScript(this, { text, shell, depth, moves, input: context.input, place, inside, ...more });
      return;
    }
    const { words, assignments = [] } = inner;
    const text = writtenText(words);
    this.addCommand({ ...command, words, assignments, redirects: [], text, depth, moves }, context);
  }

  /** Marks the rest as unread: the limit of commands is reached. */
  overflow(text: string): void {
    if (!this.#overfull)
      this.addUnread(text, `A command line may have at most ${MAX_FRAGMENTS} commands; this one has more`);
    this.#overfull = true;
  }

  addOpaque(text: string, reason: string): void {
    if (this.#opaque.length < MAX_FRAGMENTS) this.#opaque.push({ fragment: clip(text), reason });
  }

  addUnread(text: string, reason: string): void {
    this.#incomplete = true;
    this.addOpaque(text, reason);
  }

  addPipeline(stages: readonly PipelineStage[]): void {
    const filled = stages.filter((stage) => stage.length > 0);
    if (filled.length > 1) this.#pipelines.push(filled);
  }

  /**
   * Treats `bash <(curl x)`, `sh -c "$(curl x)"` and `eval "$(curl x)"` as pipelines from the substitutions into the shell. The
   * command's own fragments are `from` up to `to`; the fragments of its substitutions follow.
   */
  addFeeding(from: number, to: number): void {
    const own = this.#fragments.slice(from, to);
    if (this.size > to && own.some(runsItsSubstitutions)) {
      this.addPipeline([this.stageSince(to), Array.from({ length: to - from }, (_, index) => from + index)]);
    }
  }

  /** Returns the shell's folder after the command at `index`, moved by a `cd`. */
  movesAfter(index: number, moves: readonly string[] | null): readonly string[] | null {
    return movesAfterAll(this.#fragments, index, moves);
  }

  addOperator(operator: string): void {
    this.#operator ??= operator;
  }

  /** Returns the commands added since `from` as a stage. */
  stageSince(from: number): PipelineStage {
    return Array.from({ length: this.#fragments.length - from }, (_, index) => from + index);
  }

  finish(form: ReadCommand["form"], text: string): ReadCommand {
    return {
      form,
      text,
      fragments: this.#fragments,
      opaque: [
        ...this.#opaque,
        ...movedNames(this.#fragments, this.setters.looped),
        ...this.setters.spots(this.#fragments),
      ],
      pipelines: this.#pipelines,
      operator: this.#operator,
      loops: [...this.setters.looped],
      incomplete: this.#incomplete,
      ...(this.setters.doubts.length === 0 ? {} : { doubts: this.setters.doubts }),
    };
  }
}

function unknownAmong(found: readonly Inner[], known: Set<string>): readonly Inner[] {
  return found.filter((inner) => {
    const key = JSON.stringify(inner);
    return !known.has(key) && known.add(key);
  });
}

/** Joins as many words as a fragment shows. */
function writtenText(words: readonly CommandWord[]): string {
  return words
    .slice(0, MAX_FRAGMENT_LENGTH)
    .map((word) => word.raw)
    .join(" ");
}

function clip(text: string): string {
  const shown = text.replaceAll(HOME_MARK, "~");
  return shown.length <= MAX_FRAGMENT_LENGTH ? shown : `${shown.slice(0, MAX_FRAGMENT_LENGTH - 1)}…`;
}

/** Builtins whose words name the variables to set. */
const SETTERS: ReadonlySet<string> = new Set(
  "export declare typeset readonly local read unset printf getopts mapfile readarray let".split(" "),
);
const USES_IFS = /\$\{?IFS\b/;

/**
 * Finds uses of a changed `$IFS` or `~`. The reader takes `$IFS` for a blank and `~` for the home folder; where a command line
 * both sets and uses either, the used value is unknown.
 *
 * @param assigned variables set by loops.
 */
function movedNames(fragments: readonly SimpleCommand[], assigned: ReadonlySet<string>): OpaqueSpot[] {
  if (assigned.size === 0 && !fragments.some(mayMove)) return [];
  const isSet = (name: string, one: SimpleCommand): boolean => assigned.has(name) || sets(one, name);
  const spots: OpaqueSpot[] = [];
  const ifs = fragments.find((one) => wordsOf(one).some((word) => USES_IFS.test(word.raw)));
  if (ifs !== undefined && fragments.some((one) => isSet("IFS", one) || setsAnything(one)))
    spots.push({ fragment: ifs.fragment, reason: "The value of $IFS is only known when the command runs" });
  const movers = fragments.filter((one) => isSet("HOME", one));
  const home = fragments.find(
    (one) =>
      movers.some((mover) => mover !== one) && wordsOf(one).some((word) => word.text.includes(HOME_MARK)),
  );
  if (home !== undefined)
    spots.push({
      fragment: home.fragment,
      reason: "The folder that ~ stands for is only known when the command runs",
    });
  return spots;
}

function mayMove({ assignments, words: [program] }: SimpleCommand): boolean {
  return assignments.length > 0 || (program !== undefined && SETTERS.has(program.text));
}

function wordsOf(command: SimpleCommand): CommandWord[] {
  const targets = command.redirects.map((redirect) => redirect.target);
  return [...command.words, ...targets.filter((target) => target !== null)];
}

function sets(command: SimpleCommand, name: string): boolean {
  if (command.assignments.some((assignment) => assignment.name === name)) return true;
  const [program, ...others] = command.words;
  if (program === undefined || !SETTERS.has(program.text)) return false;
  return others.some((word) => word.text === name || word.text.startsWith(`${name}=`));
}

/** `export $x`, `read "$x"`. */
function setsAnything(command: SimpleCommand): boolean {
  const [program, ...others] = command.words;
  if (program === undefined || !SETTERS.has(program.text)) return false;
  return others.some((word) => word.text.startsWith("\0"));
}

const SAME_SHELL: ReadonlySet<string> = new Set(["command", "builtin", "eval"]);

/** Returns the shell's folder after a command that may be a `cd`; null if unknown. */
function movesAfter(
  words: readonly CommandWord[],
  moves: readonly string[] | null,
): readonly string[] | null {
  const program = words[0]?.text;
  if (program === "popd") return null;
  if (program !== "cd" && program !== "pushd") return moves;
  const known = words.slice(1).filter((word) => word.vanishes !== true);
  const target = known.find((word) => !/^-./.test(word.text));
  if (target === undefined) return known.length < words.length - 1 ? null : [HOME_MARK];
  return target.text === "-" ? null : movedBy(moves, target);
}

/**
 * Also follows commands run in the same shell by the command at `index`: `command cd x`, `eval 'cd x'`. A `cd` in a subshell of
 * `eval` counts too: a folder further away is the stricter answer.
 */
function movesAfterAll(
  commands: readonly SimpleCommand[],
  index: number,
  moves: readonly string[] | null,
): readonly string[] | null {
  const first = commands[index]?.words[0]?.text ?? "";
  if (!SAME_SHELL.has(first)) return movesAfter(commands[index]?.words ?? [], moves);
  return commands.slice(index + 1).reduce((moved, { words }) => movesAfter(words, moved), moves);
}

/** Returns the folder in which a wrapper such as `env -C` runs its command. */
function movesTo(inner: Inner, moves: readonly string[] | null): readonly string[] | null {
  return inner.kind === "opaque" || inner.folder === undefined ? moves : movedBy(moves, inner.folder);
}

/** Of a path of `cd`s; a folder further down is unknown. */
const MAX_LENGTH = 1024;

/**
 * Joins the moves since the last absolute folder into a single path: when each of 2,000 commands walked the 2,000 earlier `cd`s,
 * reading took minutes.
 */
function movedBy(moves: readonly string[] | null, target: CommandWord): readonly string[] | null {
  const { kind, text } = target;
  if (kind !== "literal") return null;
  if (text.startsWith("/") || text.startsWith(HOME_MARK)) return [text];
  if (moves === null) return null;
  const path = [...moves, text].join("/");
  return path.length > MAX_LENGTH ? null : [path];
}
