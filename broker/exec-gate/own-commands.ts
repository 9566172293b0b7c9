/** The simple commands that a command line was judged by: what of them is approved, and what was told, is not said again. */
import { posix } from "node:path";
import type { DecisionRule } from "../../schemas/generated/types.ts";
import type { ProgramStart } from "../../world/backend.ts";
import type { Effective } from "../model/effective.ts";
import {
  type CommandWord,
  HOME_MARK,
  isKnownStart,
  programsOf,
  readArgv,
  runsAnything,
  type SimpleCommand,
  type StartFinding,
  type StartWarning,
  type Where,
} from "../policy/index.ts";

export type OwnParts = {
  /** The hash of the policies that a person approved the command under; null: nobody did. */
  readonly approvedUnder: string | null;
  /** Those of the command line, read when they are first needed. */
  readonly commands: () => readonly SimpleCommand[];
  readonly where: Where;
  /** Rules that the command's own line, or those below it, name already. */
  readonly told: readonly DecisionRule[];
  /** The line asked, and went on because it was only watched. */
  readonly wouldAsk?: boolean;
};

export class OwnCommands {
  readonly #parts: OwnParts;
  #commands: readonly SimpleCommand[] | undefined;
  #programs: readonly string[] | undefined;
  /** What a person said yes to as a part of what else was started; each for one start. */
  readonly #granted: { readonly command: SimpleCommand; readonly under: string }[] = [];

  constructor(parts: OwnParts) {
    this.#parts = parts;
  }

  /**
   * Whether a person said yes to all that asks here, under the policies that hold now: to this very command, or to what it
   * only starts in turn, which is looked at again then.
   */
  isApproved(asking: readonly StartFinding[], start: ProgramStart, { hash }: Effective): boolean {
    const own = this.#parts.approvedUnder === hash ? this.#own() : [];
    if (own.some((one) => this.#isThis(one, start))) return true;
    if (this.#isGranted(start, hash)) return true;
    return asking.every(({ command }) => own.some((one) => command !== null && isWritten(one, command)));
  }

  /**
   * Whether this start needs no answer of its own under `approval.require`: a person said yes to the line, the line names the
   * program, or it names one that runs the project's own commands or is known to start this one.
   */
  speaksFor(start: ProgramStart, { hash }: Effective): boolean {
    const { approvedUnder, wouldAsk } = this.#parts;
    if (approvedUnder === hash || wouldAsk === true) return true;
    const programs = (this.#programs ??= programsOf(this.#own()));
    const [{ path }] = start.files;
    return (
      programs.some(runsAnything) ||
      (path !== null && isKnownStart(programs, path)) ||
      this.#own().some((one) => this.#isThis(one, start)) ||
      this.#isGranted(start, hash)
    );
  }

  /** Each such answer counts for one start. */
  #isGranted(start: ProgramStart, hash: string): boolean {
    const granted = this.#granted.findIndex(
      ({ command, under }) => under === hash && this.#isThis(command, start),
    );
    return granted >= 0 && this.#granted.splice(granted, 1).length > 0;
  }

  /** A person was shown all of it: what such a start starts in turn needs no other answer. */
  approve(asked: readonly StartFinding[], { files: [file] }: ProgramStart, { hash: under }: Effective): void {
    const isWhole = asked.some(({ rule }) => rule.list === "approval.require");
    const inner = [
      ...asked.flatMap(({ command }) => command ?? []),
      ...(isWhole ? readArgv(file.argv).fragments : []),
    ].filter(({ depth }) => depth > 0);
    // Of each reading of the same words.
    const each = new Map(inner.map((command) => [JSON.stringify(command.words), command]));
    for (const command of each.values()) {
      if (this.#granted.length < MAX_GRANTED) this.#granted.push({ command, under });
    }
  }

  /** Whether the line of the command, or one below it, says the same of this very start. */
  hasTold({ rule: { source, pattern } }: StartWarning, start: ProgramStart): boolean {
    const isTold = this.#parts.told.some((rule) => rule.source === source && rule.pattern === pattern);
    return isTold && this.#own().some((one) => this.#isThis(one, start));
  }

  #own(): readonly SimpleCommand[] {
    return (this.#commands ??= this.#parts.commands());
  }

  /** By the file that its program stands for, by the name that it gets, and by its words. */
  #isThis(own: SimpleCommand, { files: [file], cut }: ProgramStart): boolean {
    const [program, ...words] = own.words;
    const [name = "", ...given] = file.argv;
    return (
      !cut &&
      program?.kind === "literal" &&
      baseOf(program.text) === baseOf(name) &&
      this.#leadsTo(own, program.text, file.path) &&
      fits(words, given, this.#parts.where.home)
    );
  }

  #leadsTo({ moves }: SimpleCommand, program: string, real: string | null): boolean {
    const { cwd, home, resolve } = this.#parts.where;
    if (real === null || resolve === undefined) return false;
    const written = program.replaceAll(HOME_MARK, home);
    if (!written.includes("/")) return resolve(written)?.real === real;
    if (moves === null) return false;
    const folder = posix.resolve(cwd, ...moves.map((move) => move.replaceAll(HOME_MARK, home)));
    return resolve(posix.resolve(folder, written))?.real === real;
  }
}

const MAX_GRANTED = 100;

/** Beyond it a command is another one, and a person is asked again: each word that was not known is tried as each. */
const MAX_COMPARED = 100_000;

/** The same words inside another program, that starts it: `sh -c 'git push'`. */
function isWritten(own: SimpleCommand, command: SimpleCommand): boolean {
  return (
    command.depth > 0 &&
    own.words.length === command.words.length &&
    own.words.every((word, index) => word.kind === "literal" && word.text === command.words[index]?.text)
  );
}

/** Whether words may be what became of those that were written: one that was not known may have become any, or several. */
function fits(written: readonly CommandWord[], words: readonly string[], home: string): boolean {
  if (written.length * words.length > MAX_COMPARED) return false;
  let reached = new Set([0]);
  for (const word of written) {
    const next = new Set<number>();
    for (const at of reached) {
      if (word.kind === "literal") {
        if (words[at] === word.text.replaceAll(HOME_MARK, home)) next.add(at + 1);
        continue;
      }
      const from = word.vanishes === true ? at : at + 1;
      for (let to = from; to <= words.length; to += 1) next.add(to);
    }
    reached = next;
  }
  return reached.has(words.length);
}

function baseOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
