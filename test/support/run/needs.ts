/** Programs that the suite may not take for granted: git, Node, npm and a C compiler are there, these only on some machines. */
import { accessSync, constants, statSync } from "node:fs";
import { release } from "node:os";
import { join } from "node:path";
import { TestRunner, test } from "vitest";
import { type Actor, actors } from "../users/users.ts";

const OPTIONAL = ["python3", "perl", "nft", "systemd-analyze"] as const;
/** Programs of terminals: of a command, `less` is also a word. */
export type Optional =
  | (typeof OPTIONAL)[number]
  | "setfacl"
  | "tmux"
  | "vim"
  | "fzf"
  | "less"
  | "htop"
  | "fish"
  | "zsh";

/** Where programs of a clean environment are found (users.ts). */
const FOLDERS = ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"];

export function has(program: Optional): boolean {
  return FOLDERS.some((folder) => isProgram(join(folder, program)));
}

/** Inside a test: ends it as skipped when this machine has not all of them. */
export function needs(...programs: readonly Optional[]): void {
  const why = whyNot(programs);
  if (why !== undefined) TestRunner.getCurrentTest()?.context.skip(why);
}

/** Inside a test: {@link needs} of whatever a command names. */
export function needsOf(command: string): void {
  needs(...namedIn(command));
}

/** Why a command cannot run here. */
export function whyNotHere(command: string): string | undefined {
  return whyNot(namedIn(command));
}

/** {@link actors}, or nobody and one skipped test when this machine has not all of the programs. */
export function actorsWith(...programs: readonly Optional[]): readonly Actor[] {
  return thoseWith(programs, actors());
}

export function thoseWith(programs: readonly Optional[], who: readonly Actor[]): readonly Actor[] {
  if (whyNot(programs) === undefined) return who;
  test(`everything with ${programs.join(" and ")}`, () => needs(...programs));
  return [];
}

function namedIn(command: string): readonly Optional[] {
  return OPTIONAL.filter((program) => new RegExp(`\\b${program}\\b`).test(command));
}

function whyNot(programs: readonly Optional[]): string | undefined {
  const missing = programs.filter((program) => !has(program));
  if (missing.length === 0) return undefined;
  return `${missing.join(" and ")} ${missing.length === 1 ? "is" : "are"} not installed`;
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    // It is not there, or not to be run.
    return false;
  }
}

/** Whether the kernel here is this version of Linux or a later one. */
export function linuxSince(major: number, minor: number): boolean {
  const [ownMajor = 0, ownMinor = 0] = release().split(".").map(Number);
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}
