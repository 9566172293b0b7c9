/** `.substrate-profile` files: the nearest at or above the working directory names a policy that narrows. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Place } from "../model/place.ts";
import { isWithin } from "./projects.ts";
import { isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";

export const PROFILE_FILE = ".substrate-profile";

/** A word with its line end; longer files are invalid. */
const MAX_BYTES = 129;

const WORD = /^\s*([a-z0-9-]+)\s*$/;

export type FolderProfile = {
  /**
   * Names of the policies chosen by profile files, the nearest file's last: the nearest file at or above the project, and all
   * files between the project and the working directory. A command may have written the latter, so they must not hide the
   * project's file.
   */
  readonly names: readonly string[];
  /** Profile files found in the project so far; all must be read-only inside worlds. */
  readonly files: readonly string[];
};

export class Profiles {
  readonly #met = new Set<string>();

  /**
   * Reads the profile files from the host. A file other than a plain file with one word is refused, because ignoring the file
   * would widen the policy.
   *
   * @param called where the caller said that the command runs, if it begins elsewhere: the profiles of both folders narrow.
   */
  of({ project, cwd }: Place, called = cwd): FolderProfile | Refusal {
    const named = this.#of(project, called);
    if (called === cwd || isRefusal(named)) return named;
    const there = this.#of(project, cwd);
    return isRefusal(there) ? there : { ...there, names: [...new Set([...named.names, ...there.names])] };
  }

  #of(project: string, cwd: string): FolderProfile | Refusal {
    const names: string[] = [];
    let isDecided = false;
    for (let folder = cwd; ; folder = dirname(folder)) {
      const path = join(folder, PROFILE_FILE);
      const word = readWord(path);
      if (typeof word === "object") return word;
      if (word !== undefined) {
        this.#met.add(path);
        if (!isDecided) names.unshift(word);
        isDecided ||= folder === project || !isWithin(folder, project);
      }
      if (folder === "/") return { names, files: this.#within(project) };
    }
  }

  /**
   * Profile files in the project: a folder with such a file is itself a project, often inside another project whose commands
   * could write the file.
   */
  #within(project: string): readonly string[] {
    return [...this.#met].filter((path) => isWithin(path, project)).sort();
  }
}

/** Reads a profile file without following links or waiting for pipes: a command may have placed either there. */
function readWord(path: string): string | undefined | Refusal {
  let file: number;
  try {
    // The file is nearly always missing, in every folder up to the root, and a thrown error costs ten times as much as this
    // check.
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    return code === "ENOENT" || code === "ENOTDIR"
      ? undefined
      : unusable(path, `it cannot be opened (${code})`);
  }
  try {
    if (!fstatSync(file).isFile()) return unusable(path, "it is not a regular file");
    const bytes = Buffer.alloc(MAX_BYTES);
    const length = readSync(file, bytes, 0, MAX_BYTES, 0);
    return (
      WORD.exec(bytes.toString("utf8", 0, length))?.[1] ?? unusable(path, "it must contain exactly one word")
    );
  } finally {
    closeSync(file);
  }
}

function unusable(path: string, why: string): Refusal {
  return refusal(
    "unknown_profile",
    `Cannot use the profile file ${quoted(path)}: ${why}`,
    "Write the name of a selectable policy into it, or ask the operator to remove it",
  );
}
