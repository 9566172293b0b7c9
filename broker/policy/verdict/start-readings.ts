/** Readings of a program start as simple commands, for matching against rules. Pure. */
import { posix } from "node:path";
import type { ProgramFile } from "../../../world/backend.ts";
import { MAX_FRAGMENT_LENGTH, type ReadCommand, type SimpleCommand } from "../words/command.ts";
import type { Where } from "../rules/decision.ts";
import { baseName } from "../words/inner.ts";
import { isSystemProgram } from "../rules/match.ts";
import { MULTIPLE } from "../rules/prepare.ts";
import { readArgv } from "../shell/read.ts";
import { literalWord } from "../words/read-word.ts";
import { runsInside } from "../rules/start-names.ts";

export interface StartReading {
  /** The program as started, then the readable commands that the program runs in turn. */
  readonly commands: readonly [SimpleCommand, ...SimpleCommand[]];
  /** Commands run inside the program's own process: the exec gate never sees a start. */
  readonly inside: readonly SimpleCommand[];
  /** Some inner commands could not be read. */
  readonly hidden: boolean;
  /** Resolves the started path to the started file, and a claimed name to no file. */
  readonly where: Where;
  /** The program word is the path of the file, not a name claimed by the caller or by equal content. */
  readonly isPath: boolean;
}

/** Returns a reading for each name of a file: path, names given by the caller, names of programs with the same content. */
export function readingsOf(file: ProgramFile, where: Where): readonly StartReading[] {
  const [, ...rest] = file.argv;
  const called = calledPath(file, where);
  const paths = [called, ...(isInstalledName(file) ? [] : [file.path])];
  const claims = [...claimedNames(file), ...file.same.filter((name) => meansItself(name, file))];
  const reader = new StartReader(rest);
  const known = new Set<string>();
  const fresh = (word: string | null): word is string =>
    word !== null && word !== "" && !known.has(word) && known.add(word) !== undefined;
  const byName = namesOnly(where);
  return [
    ...paths.filter(fresh).map((word) => reader.read(word, standsFor(word, file, where), true)),
    // A path that possibly leads to another file.
    ...[uncertainPath(file, called)].filter(fresh).map((word) => reader.read(word, byName, false)),
    ...claims.filter(fresh).map((word) => reader.read(word, byName, false)),
    // `git-push x` is `git push x`.
    ...[...new Set([file.called, ...claims].map(baseName))]
      .flatMap((word) => /^git-(.+)$/.exec(word)?.[1] ?? [])
      .map((subcommand) => new StartReader([subcommand, ...rest]).read("git", byName, false)),
  ];
}

/** Returns the path that certainly led to the file; null without such a path. */
function calledPath({ called, path }: ProgramFile, where: Where): string | null {
  if (called === "") return null;
  if (called.startsWith("/") && !called.split("/").includes("..")) return called;
  // The process's folder is unknown: the path counts only if it resolves to the started file.
  const absolute = posix.resolve(where.cwd, called);
  return path !== null && where.resolve?.(absolute)?.real === path ? absolute : null;
}

function uncertainPath({ called }: ProgramFile, sure: string | null): string | null {
  if (called === "" || sure !== null) return null;
  return called.includes("/") ? called : `./${called}`;
}

/** Returns the names given by the caller; a login shell's name has a leading dash. */
function claimedNames({ argv: [name = ""] }: ProgramFile): readonly string[] {
  return name.startsWith("-") ? [name, name.slice(1)] : [name];
}

/**
 * Whether a multi-call file was called by an installed program's name, which then chooses the program; called by the file's own
 * name, the first word chooses (`grep sudo x` is no `busybox sudo x`).
 */
function isInstalledName(file: ProgramFile): boolean {
  const { called, argv } = file;
  const name = baseName(called);
  const isSystem = called.startsWith("/") && isSystemProgram(called) && !MULTIPLE.has(name);
  return isMany(file) && isSystem && baseName(argv[0] ?? "") === name;
}

function meansItself(name: string, file: ProgramFile): boolean {
  if (!isMany(file)) return true;
  return MULTIPLE.has(name) && !isInstalledName(file);
}

/** Whether the file is a system-installed multi-call program; elsewhere, the name alone proves nothing. */
export function isMany({ path }: ProgramFile): boolean {
  return path !== null && MULTIPLE.has(baseName(path)) && isSystemProgram(path);
}

/** Reads the same words behind several program names; commands run in turn depend only on the name's last part, so are read once. */
class StartReader {
  readonly #words: readonly string[];
  readonly #read = new Map<string, ReadCommand>();

  constructor(words: readonly string[]) {
    this.#words = words;
  }

  read(program: string, where: Where, isPath: boolean): StartReading {
    const name = baseName(program);
    const argv = [program, ...this.#words];
    const read = this.#read.get(name) ?? readArgv(argv);
    this.#read.set(name, read);
    const [first, ...inner] = read.fragments;
    const own = first?.words[0]?.text === program ? first : plainly(argv);
    const isHost = runsInside(name);
    return {
      commands: [own, ...inner],
      inside: isHost ? inner.filter(({ depth }) => depth === 1) : [],
      hidden: isHost && read.incomplete,
      where,
      isPath,
    };
  }
}

/** A program with its words, even with too many words to read for inner commands. */
function plainly(argv: readonly string[]): SimpleCommand {
  const fragment = argv.join(" ").slice(0, MAX_FRAGMENT_LENGTH);
  const words = argv.map(literalWord);
  const nothing = { assignments: [], redirects: [], start: 0, end: 0, inside: [], depth: 0, moves: [] };
  return { ...nothing, words, fragment };
}

function standsFor(word: string, { path }: ProgramFile, where: Where): Where {
  const absolute = posix.resolve(where.cwd, word);
  const itself = path === null ? null : { path: absolute, real: path };
  const { resolve } = where;
  return {
    ...where,
    resolve: (program) => (program === absolute ? itself : (resolve?.(program) ?? null)),
  };
}

/** A claimed name resolves to no file. */
function namesOnly(where: Where): Where {
  return { ...where, resolve: () => null };
}
