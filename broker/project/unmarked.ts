/**
 * Decides when a folder without a mark is a project: not in shared or installed folders, and not above other projects
 * (README.md).
 */
import { BoundedMap } from "../model/bounded-map.ts";
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { isWithin } from "../model/folders.ts";
import { MARKS, type MarkedBelow, MOST_FOLDERS, markedBelow } from "./marked-below.ts";
import { quoted } from "../model/refusal.ts";

/** The reason against a folder as a project, and the alternative. */
export type Unfit = { readonly why: string; readonly hint: string };

/** Shared by the files and sockets of many programs. A world has folders of its own here, and the projects in them. */
export const SCRATCH = ["/tmp", "/var/tmp", "/dev/shm", "/run"] as const;

/** Installed by a package manager or root, and started by users: on PATH, as modules, as scripts of packages. */
const INSTALLED = ["/usr", "/var", "/snap", "/nix", "/gnu"] as const;

/** Folders of the home that login scripts and tools put on PATH. */
export const HOME_PROGRAMS = ["bin", "go/bin"] as const;

/** How long an empty search result stays valid, as long as the folder is not yet a used project. */
const BELIEVED_MS = 10_000;

const MAX_LOOKED = 64;

export type UnmarkedRules = {
  readonly home: string;
  /** Folders named in config.yaml. */
  readonly listed: readonly string[];
  /** More folders like `/tmp`: XDG_RUNTIME_DIR. */
  readonly scratch: readonly string[];
  /** Returns the PATH folder that a folder equals, lies in, or is installed around. */
  readonly programs?: (folder: string) => string | undefined;
  /** Whether a folder's mark counts. */
  readonly counts: (folder: string) => boolean;
  /** Returns the marks below the folder at its first use as a project; undefined for a folder never used. */
  readonly known: (folder: string) => MarkedBelow | undefined;
};

type Looked = { readonly marked: string | undefined; readonly complete: boolean; readonly until: number };

export class UnmarkedFolders {
  readonly #looked = new BoundedMap<string, Looked>(MAX_LOOKED);

  /** Returns the reason against a real folder without a mark; undefined for a valid project. */
  unfit(folder: string, rules: UnmarkedRules): Unfit | undefined {
    if (rules.listed.includes(folder)) return undefined;
    const below = rules.listed.find((listed) => isWithin(listed, folder));
    if (below !== undefined) return holds(folder, below, "which config.yaml names");
    const scratch = scratchAround(folder, rules);
    if (scratch !== undefined) return inScratch(folder, scratch);
    const programs = programsIn(folder, rules) ?? rules.programs?.(folder);
    if (programs !== undefined) return withPrograms(folder, programs);
    const { marked, complete } = this.#look(folder, rules);
    if (marked !== undefined) return holds(folder, marked, "a project of its own");
    return complete ? undefined : tooLarge(folder);
  }

  #look(folder: string, rules: UnmarkedRules): Looked {
    const before = rules.known(folder);
    const now = performance.now();
    if (before !== undefined) return { ...before, marked: before.marked.find(hasMark), until: now };
    const known = this.#looked.get(folder);
    if (known !== undefined && (known.marked === undefined ? now < known.until : hasMark(known.marked)))
      return known;
    const { marked, complete } = markedBelow(folder, rules.counts);
    const looked = { marked: marked.find(rules.counts), complete, until: now + BELIEVED_MS };
    this.#looked.set(folder, looked);
    return looked;
  }
}

/**
 * Finds the shared folder around a folder. A home below `/tmp` is exempt, and so are listed folders there, with all folders
 * below.
 */
function scratchAround(folder: string, { home, listed, scratch }: UnmarkedRules): string | undefined {
  return [...SCRATCH, ...scratch].find((around) => {
    const meant = [home, ...listed].filter((each) => each !== around && isWithin(each, around));
    return isWithin(folder, around) && !meant.some((each) => isWithin(folder, each));
  });
}

/** Finds the folder of programs that a folder equals, lies in, or contains. */
function programsIn(folder: string, { home, listed }: UnmarkedRules): string | undefined {
  const own = HOME_PROGRAMS.map((name) => join(home, name));
  const inHome = own.find((place) => isWithin(folder, place) || (isWithin(place, folder) && exists(place)));
  if (inHome !== undefined) return inHome;
  return INSTALLED.find((around) => {
    const meant = [home, ...listed].filter((each) => each !== around && isWithin(each, around));
    return isWithin(folder, around) && !meant.some((each) => isWithin(folder, each));
  });
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function hasMark(folder: string): boolean {
  return MARKS.some((mark) => lstatSync(join(folder, mark), { throwIfNoEntry: false }) !== undefined);
}

function holds(folder: string, inner: string, what: string): Unfit {
  return {
    why: `it contains ${quoted(inner)}, ${what}, and has no .git or .substrate-profile itself`,
    hint: `Use ${quoted(inner)}, or list ${quoted(folder)} under 'projects' in config.yaml`,
  };
}

function inScratch(folder: string, scratch: string): Unfit {
  return {
    why: `it is in ${quoted(scratch)}, where other programs keep files and sockets, and no folder at or above it has a .git or .substrate-profile`,
    hint: `Use a folder below your home, run 'git init ${folder}' first, or list ${quoted(folder)} under 'projects' in config.yaml`,
  };
}

function withPrograms(folder: string, programs: string): Unfit {
  return {
    why: `it is in ${quoted(programs)}, which has programs that start outside of worlds, and no folder at or above it has a .git or .substrate-profile`,
    hint: `Use a folder below your home, run 'git init ${folder}' first, or list ${quoted(folder)} under 'projects' in config.yaml`,
  };
}

function tooLarge(folder: string): Unfit {
  return {
    why: `it has no .git or .substrate-profile, and more than ${MOST_FOLDERS} folders, too many to search for projects`,
    hint: `Use the folder below it that you work in, run 'git init ${folder}' first, or list ${quoted(folder)} under 'projects' in config.yaml`,
  };
}
