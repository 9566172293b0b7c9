/** The simple commands of the judged command line: starting one needs no second approval and no second notice. */
import { posix } from "node:path";
import type { DecisionRule } from "../../schemas/generated/types.ts";
import type { ProgramStart } from "../../world/backend.ts";
import type { Effective } from "../model/effective.ts";
import { realPath } from "../model/host-paths.ts";
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
  /** Hash of the policies at a person's approval of the command; null without approval. */
  readonly approvedUnder: string | null;
  /** Parses the command line's simple commands on first use. */
  readonly commands: () => readonly SimpleCommand[];
  readonly where: Where;
  /** Rules already named in lines of the command. */
  readonly told: readonly DecisionRule[];
  /** An observing policy would have asked about the command line. */
  readonly wouldAsk?: boolean;
};

export class OwnCommands {
  readonly #parts: OwnParts;
  #commands: readonly SimpleCommand[] | undefined;
  #programs: readonly string[] | undefined;
  /** Commands approved as part of another start; each counts for a single start. */
  readonly #granted: { readonly command: SimpleCommand; readonly under: string }[] = [];

  constructor(parts: OwnParts) {
    this.#parts = parts;
  }

  /**
   * Whether a person approved every asking finding under the policies in force: either this start itself, or the inner
   * commands that this program merely starts. Each inner command is judged again at its own start.
   */
  isApproved(asking: readonly StartFinding[], start: ProgramStart, { hash }: Effective): boolean {
    const own = this.#parts.approvedUnder === hash ? this.#own() : [];
    if (own.some((one) => this.#isThis(one, start) && this.#isThere(one, start))) return true;
    if (this.#isGranted(start, hash)) return true;
    return asking.every(({ command }) => own.some((one) => command !== null && isWritten(one, command)));
  }

  /**
   * Whether this start needs no separate answer under `approval.require`: a person approved the line, or the line names
   * the program, a runner of the project's own commands, or a program known to start this one.
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

  /** Each approval counts for a single start. */
  #isGranted(start: ProgramStart, hash: string): boolean {
    const granted = this.#granted.findIndex(
      ({ command, under }) => under === hash && this.#isThis(command, start),
    );
    return granted >= 0 && this.#granted.splice(granted, 1).length > 0;
  }

  /** Records an approval: the person saw the whole start, so the programs inside need no separate answer. */
  approve(asked: readonly StartFinding[], { files: [file] }: ProgramStart, { hash: under }: Effective): void {
    const isWhole = asked.some(({ rule }) => rule.list === "approval.require");
    const inner = [
      ...asked.flatMap(({ command }) => command ?? []),
      ...(isWhole ? readArgv(file.argv).fragments : []),
    ].filter(({ depth }) => depth > 0);
    // Once per distinct words: several readings may yield the same command.
    const each = new Map(inner.map((command) => [JSON.stringify(command.words), command]));
    for (const command of each.values()) {
      if (this.#granted.length < MAX_GRANTED) this.#granted.push({ command, under });
    }
  }

  /** Whether the command's lines already report this rule for this start. */
  hasTold({ rule: { source, pattern } }: StartWarning, start: ProgramStart): boolean {
    const isTold = this.#parts.told.some((rule) => rule.source === source && rule.pattern === pattern);
    return isTold && this.#own().some((one) => this.#isThis(one, start));
  }

  #own(): readonly SimpleCommand[] {
    return (this.#commands ??= this.#parts.commands());
  }

  /** Compares resolved file, program name and arguments. */
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

  /**
   * Whether a start of the line's own words is in a folder to which the line goes: a person who approved `git push` has approved it
   * for no other repository. A `cd` can fail; a program that starts the words, as `find -execdir`, can go anywhere.
   */
  #isThere({ depth, moves }: SimpleCommand, { folder }: ProgramStart): boolean {
    if (depth > 0 || moves === null) return true;
    const { cwd, home } = this.#parts.where;
    const steps = moves.map((move) => move.replaceAll(HOME_MARK, home));
    return [...steps.keys(), steps.length].some((count) => {
      const there = posix.resolve(cwd, ...steps.slice(0, count));
      return folder === there || folder === realPath(there);
    });
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

/**
 * Bound on the comparison; longer commands count as different, and a person is asked again. Each unknown word may match
 * any number of arguments.
 */
const MAX_COMPARED = 100_000;

/** Whether the same words stand inside a program that runs a command line: `sh -c 'git push'`. */
function isWritten(own: SimpleCommand, command: SimpleCommand): boolean {
  return (
    command.depth > 0 &&
    own.words.length === command.words.length &&
    own.words.every((word, index) => word.kind === "literal" && word.text === command.words[index]?.text)
  );
}

/** Whether arguments may result from the written words: an unknown word may expand to any words. */
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
