/** When a folder without a mark is a project: not where many programs' files lie, and not above other projects (CONTRACT §2). */
import { BoundedMap } from "../model/bounded-map.ts";
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { isWithin } from "../model/folders.ts";
import { MARKS, type MarkedBelow, MOST_FOLDERS, markedBelow } from "./marked-below.ts";
import { quoted } from "../model/refusal.ts";

/** Why a folder is no project, and what to do instead. */
export type Unfit = { readonly why: string; readonly hint: string };

/** Everybody's programs put files and sockets there. */
const SCRATCH = ["/tmp", "/var/tmp", "/dev/shm", "/run"] as const;

/** What a package manager or root installs there, this user or all users start: on PATH, as modules, as scripts of packages. */
const INSTALLED = ["/usr", "/var", "/snap", "/nix", "/gnu"] as const;

/** Folders of the home that login scripts and tools put on PATH. */
const HOME_PROGRAMS = ["bin", "go/bin"] as const;

/** That nothing was found is believed for this time, while the folder has not become a project. */
const BELIEVED_MS = 10_000;

const MAX_LOOKED = 64;

export type UnmarkedRules = {
  readonly home: string;
  /** Folders that config.yaml names. */
  readonly listed: readonly string[];
  /** More folders of the kind of `/tmp`: XDG_RUNTIME_DIR. */
  readonly scratch: readonly string[];
  /** The folder on a person's PATH that a folder is, lies in, or is installed around. */
  readonly programs?: (folder: string) => string | undefined;
  /** Whether the mark of a folder counts. */
  readonly counts: (folder: string) => boolean;
  /** What stood below it when it first was a project; undefined when it never was. */
  readonly known: (folder: string) => MarkedBelow | undefined;
};

type Looked = { readonly marked: string | undefined; readonly complete: boolean; readonly until: number };

export class UnmarkedFolders {
  readonly #looked = new BoundedMap<string, Looked>(MAX_LOOKED);

  /** The reason why a real folder without a mark is no project; undefined when it is one. */
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

/** A home below `/tmp` is a home. So is what the operator lists there, and all below it. */
function scratchAround(folder: string, { home, listed, scratch }: UnmarkedRules): string | undefined {
  return [...SCRATCH, ...scratch].find((around) => {
    const meant = [home, ...listed].filter((each) => each !== around && isWithin(each, around));
    return isWithin(folder, around) && !meant.some((each) => isWithin(folder, each));
  });
}

/** The folder of programs that a folder lies in, is, or holds. */
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
    why: `it holds ${quoted(inner)}, ${what}, and has no .git or .substrate-profile itself`,
    hint: `Use ${quoted(inner)}, or list ${quoted(folder)} under 'projects' in config.yaml`,
  };
}

function inScratch(folder: string, scratch: string): Unfit {
  return {
    why: `it lies in ${quoted(scratch)}, where other programs keep files and sockets, and no folder at or above it has a .git or .substrate-profile`,
    hint: `Use a folder below your home, run 'git init ${folder}' first, or list ${quoted(folder)} under 'projects' in config.yaml`,
  };
}

function withPrograms(folder: string, programs: string): Unfit {
  return {
    why: `programs that start outside of every world are kept in ${quoted(programs)}, and no folder at or above it has a .git or .substrate-profile`,
    hint: `Use a folder below your home, run 'git init ${folder}' first, or list ${quoted(folder)} under 'projects' in config.yaml`,
  };
}

function tooLarge(folder: string): Unfit {
  return {
    why: `it has no .git or .substrate-profile, and more than ${MOST_FOLDERS} folders, too many to look for projects in them`,
    hint: `Use the folder in it that you work in, run 'git init ${folder}' first, or list ${quoted(folder)} under 'projects' in config.yaml`,
  };
}
