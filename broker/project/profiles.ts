/** `.substrate-profile` files: the nearest at or above a working directory names a policy that narrows. */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Place } from "../model/place.ts";
import { isWithin } from "./projects.ts";
import { quoted, type Refusal, refusal } from "../model/refusal.ts";

export const PROFILE_FILE = ".substrate-profile";

/** One word and its line end; what is longer is none. */
const MAX_BYTES = 129;

const WORD = /^\s*([a-z0-9-]+)\s*$/;

export type FolderProfile = {
  /**
   * The policies that hold by such files, the nearest file's last: that of the nearest file at or above the project, and those
   * of files between it and the working directory. Such a file may be a command's, and must not hide the project's.
   */
  readonly names: readonly string[];
  /** The files of this kind in the project that were met so far: none may be written inside a world. */
  readonly files: readonly string[];
};

export class Profiles {
  readonly #met = new Set<string>();

  /** Reads from the host, now. A file that is no plain file with one word refuses: to pass it over would widen. */
  of({ project, cwd }: Place): FolderProfile | Refusal {
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

  /** A folder with such a file is a project itself, and often lies in another one, whose commands could write it. */
  #within(project: string): readonly string[] {
    return [...this.#met].filter((path) => isWithin(path, project)).sort();
  }
}

/** Never follows a link and never waits for a pipe: whoever works in the project may have put either there. */
function readWord(path: string): string | undefined | Refusal {
  let file: number;
  try {
    // Nearly always there is none, in any folder up to the root: an error that is thrown costs ten times the look.
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) return undefined;
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    return code === "ENOENT" || code === "ENOTDIR"
      ? undefined
      : unusable(path, `it cannot be opened (${code})`);
  }
  try {
    if (!fstatSync(file).isFile()) return unusable(path, "it is no plain file");
    const bytes = Buffer.alloc(MAX_BYTES);
    const length = readSync(file, bytes, 0, MAX_BYTES, 0);
    return WORD.exec(bytes.toString("utf8", 0, length))?.[1] ?? unusable(path, "it does not hold one word");
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
