/** The simple commands that the start of one file may be: what a rule is asked about. Pure. */
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
  /** The program as it was started, then what it runs in turn as far as that can be read. */
  readonly commands: readonly [SimpleCommand, ...SimpleCommand[]];
  /** What runs inside the program itself: nothing will ask about it. */
  readonly inside: readonly SimpleCommand[];
  /** Some of that could not be read. */
  readonly hidden: boolean;
  /** Where its program is the file that was started, and nothing that only claims to be. */
  readonly where: Where;
  /** It says by which path the file was found, not what the caller or its content says that it is. */
  readonly isPath: boolean;
}

/** All that a file may be called: by its path, by the words of whoever started it, and by what is in it. */
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
    // By a path that only might lead to the file.
    ...[uncertainPath(file, called)].filter(fresh).map((word) => reader.read(word, byName, false)),
    ...claims.filter(fresh).map((word) => reader.read(word, byName, false)),
    // `git-push x` is `git push x`.
    ...[...new Set([file.called, ...claims].map(baseName))]
      .flatMap((word) => /^git-(.+)$/.exec(word)?.[1] ?? [])
      .map((subcommand) => new StartReader([subcommand, ...rest]).read("git", byName, false)),
  ];
}

/** By a path that is sure to have led to the file; null without one. */
function calledPath({ called, path }: ProgramFile, where: Where): string | null {
  if (called === "") return null;
  if (called.startsWith("/") && !called.split("/").includes("..")) return called;
  // The folder of the process is not told: the file itself must say that this is the right one.
  const absolute = posix.resolve(where.cwd, called);
  return path !== null && where.resolve?.(absolute)?.real === path ? absolute : null;
}

function uncertainPath({ called }: ProgramFile, sure: string | null): string | null {
  if (called === "" || sure !== null) return null;
  return called.includes("/") ? called : `./${called}`;
}

/** What the caller calls it; a shell that is to log somebody in has a dash before its name. */
function claimedNames({ argv: [name = ""] }: ProgramFile): readonly string[] {
  return name.startsWith("-") ? [name, name.slice(1)] : [name];
}

/**
 * The name of an installed program whose file is many programs: such a file is the one it is called, and not by its own name the
 * one that its first word says (`grep sudo x` is no `busybox sudo x`).
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

/** A file that is many programs; one elsewhere than where the system has it may be anything under that name. */
export function isMany({ path }: ProgramFile): boolean {
  return path !== null && MULTIPLE.has(baseName(path)) && isSystemProgram(path);
}

/** Reads the same words behind several names for their program: what runs in turn hangs on the last part of one alone. */
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

/** A program with its words, also where they are too many to be read for what it runs in turn. */
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

/** A name that somebody claims leads to no file. */
function namesOnly(where: Where): Where {
  return { ...where, resolve: () => null };
}
