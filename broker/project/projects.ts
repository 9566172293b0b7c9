/**
 * Decides which folder a command works in, and which folders can never be a project (README.md). All comparisons use real
 * paths: a link to `/etc` is `/etc`.
 */
import { isRefusal, quoted, type Refusal, refusal } from "../model/refusal.ts";
import type { Place } from "../model/place.ts";
import { existsSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { isWithin } from "../model/folders.ts";
import { MARKS } from "./marked-below.ts";
import type { Marks } from "./marks.ts";
import type { ProgramFolders } from "./program-folders.ts";
import type { SecondNames } from "./second-names.ts";
import { readSmallFile } from "../model/small-file.ts";
import { type Unfit, UnmarkedFolders } from "./unmarked.ts";

export { isWithin } from "../model/folders.ts";

/** The broker's knowledge of folders beyond the file system. */
export type KnownFolders = {
  readonly marks: Pick<Marks, "counts" | "below" | "isInUsed" | "isUsedByPerson">;
  readonly secondNames: Pick<SecondNames, "of">;
  readonly unmarked: Pick<UnmarkedFolders, "unfit">;
  /** Real paths of all folders named in config.yaml. */
  readonly listed: readonly string[];
  /** More folders like `/tmp`. */
  readonly scratch: readonly string[];
  readonly programs: Pick<ProgramFolders, "around">;
};

export type ProjectRules = {
  /** The home folder of the broker's user. */
  readonly home: string;
  /** SUBSTRATE_HOME and the folder of held changes: no project may contain or lie in any of these. */
  readonly hidden: readonly string[];
  readonly uid: number;
  /** Real path of the running installation: may be a project, but no project may contain it. */
  readonly installation: string;
  /** Allowed roots of projects; empty means anywhere. */
  readonly roots: readonly string[];
  /** Absent where no rule is enforced, such as a command that only shows a policy's meaning. */
  readonly known?: KnownFolders;
};

/** The project of a place without a project: a path that nobody can create, because no process has the number 0. */
export const NO_PROJECT = "/proc/0/project";

/** The folder that policies are assigned to: the project, or without a project the program's working directory. */
export function folderOf({ project, cwd }: Place): string {
  return project === NO_PROJECT ? cwd : project;
}

/** On merged systems, `/bin` and `/lib` are links to below `/usr`. */
const SYSTEM = /^(\/usr)?\/(etc|usr|bin|sbin|lib[^/]*|boot|dev|proc|sys|run|var)$/;

/** Never a project: folders below the kernel's file systems, and below the system's programs. */
const BELOW_SYSTEM = /^(\/usr)?\/(proc|sys|etc|boot|bin|sbin|lib[^/]*)\/|^\/dev\/(?!shm\/)/;

const GIT_FOLDER = /\/\.git(\/|$)/;

/** Who names the folder: a person's working directory counts as a project, whoever made its mark. */
export type Asker = "agent" | "person";

/** Finds the project of a working directory, or refuses the directory. */
export function locateProject(cwd: string, rules: ProjectRules, asker: Asker = "agent"): Place | Refusal {
  if (!isAbsolute(cwd)) {
    return refusal(
      "invalid_request",
      `Cannot use ${quoted(cwd)} as cwd: it must be an absolute path`,
      "Send the full path of an existing folder",
    );
  }
  const found = realFolder(cwd);
  if (isRefusal(found)) return found;
  const { real } = found;
  const marked = nearestMarked(real, rules, asker);
  // Stat once: the checks below are on the path of every command.
  const candidates: readonly Folder[] =
    marked === undefined || marked === real ? [found] : [folderAt(marked), found];
  const reasons = candidates.map((folder) => unfit(folder, folder.real === marked, rules, asker));
  const project = candidates[reasons.indexOf(undefined)];
  if (project !== undefined) return { project: project.real, cwd: real, identity: identityOf(project) };
  const { why, hint } = reasons.at(-1) ?? { why: "it is not a project", hint: USE_ANOTHER };
  return refusal("project_not_allowed", `Cannot work in ${quoted(real)}: ${why}`, hint);
}

const USE_ANOTHER = "Use a project folder of your own, for example a git checkout below your home";

/** Returns the reason against a folder as a project; undefined for a valid project. */
function unfit(folder: Folder, hasMark: boolean, rules: ProjectRules, asker: Asker): Unfit | undefined {
  const why = neverBecause(folder.real, rules, folder.stat);
  if (why !== undefined) return { why, hint: USE_ANOTHER };
  if (hasMark) return asker === "agent" ? loadedCheckout(folder, rules) : undefined;
  const { known, home } = rules;
  return (known?.unmarked ?? new UnmarkedFolders()).unfit(folder.real, {
    home,
    listed: known?.listed ?? rules.roots,
    scratch: known?.scratch ?? [],
    programs: (folder) => known?.programs.around(folder),
    counts: (marked) => marksProject(marked, rules, "agent"),
    known: (project) => known?.marks.below(project, identityOf(folder)),
  });
}

/**
 * Refuses checkouts in settings folders: plugins of shells and editors live there and are loaded by the next shell, so an agent
 * using such a checkout as `cwd` would write code run outside every world. Agents' worktrees there are recognized by their `.git`
 * file.
 */
function loadedCheckout(folder: Folder, { home, known }: ProjectRules): Unfit | undefined {
  if (known === undefined || !isBelowSettings(folder.real, home)) return undefined;
  const isListed = known.listed.some((each) => isWithin(folder.real, each) && isBelowSettings(each, home));
  if (isListed || known.marks.isUsedByPerson(folder.real, identityOf(folder))) return undefined;
  if (!isOwnCheckout(folder.real, home)) return undefined;
  return {
    why: "it is a checkout in a settings folder of the home folder, from which shells and editors load code, and no person has used it through Substrate yet",
    hint: `Run a first command there yourself ('substrate exec -- true'), or list ${quoted(folder.real)} under 'projects' in config.yaml`,
  };
}

/**
 * Whether a folder is a repository, or a submodule of a repository also below settings folders; false for a worktree of a
 * person's project, and for a folder with only a profile.
 */
function isOwnCheckout(folder: string, home: string): boolean {
  const git = join(folder, ".git");
  const stat = statSync(git, { throwIfNoEntry: false });
  if (stat?.isFile() !== true) return stat !== undefined;
  const pointer = /^gitdir: (.+)$/m.exec(readSmallFile(git, MAX_POINTER, stat.uid) ?? "")?.[1];
  return pointer === undefined || isBelowSettings(resolve(folder, pointer), home);
}

/** Linux's `PATH_MAX`, plus the text around the path. */
const MAX_POINTER = 4096 + 16;

type Folder = { readonly real: string; readonly stat: Stats | undefined };

function folderAt(real: string): Folder {
  return { real, stat: statSync(real, { throwIfNoEntry: false }) };
}

function realFolder(cwd: string): Folder | Refusal {
  const hint = "Send the full path of an existing folder";
  if (cwd.includes("\0"))
    return refusal("invalid_request", `Cannot use ${quoted(cwd)} as cwd: it contains a NUL byte`, hint);
  try {
    const real = realpathSync.native(cwd);
    const stat = statSync(real);
    if (stat.isDirectory()) return { real, stat };
    return refusal("invalid_request", `Cannot use ${quoted(cwd)} as cwd: it is a file`, hint);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const why = code === "ENOENT" ? "it does not exist" : `the kernel reports ${code}`;
    return refusal("invalid_request", `Cannot use ${quoted(cwd)} as cwd: ${why}`, hint);
  }
}

/** Finds the nearest marked folder. A mark in the home, a system folder, or above these is ignored. */
function nearestMarked(from: string, rules: ProjectRules, asker: Asker): string | undefined {
  const ends = (folder: string): boolean =>
    folder === "/" || isWithin(rules.home, folder) || SYSTEM.test(folder);
  for (let folder = from; !ends(folder); folder = dirname(folder)) {
    if (isMarked(folder) && marksProject(folder, rules, asker)) return folder;
  }
  return undefined;
}

/** Whether a mark counts: a mark possibly made by a command counts only after a person has used or listed the folder. */
function marksProject(folder: string, { known }: ProjectRules, asker: Asker): boolean {
  if (known === undefined || asker === "person" || known.listed.includes(folder)) return true;
  return known.marks.counts(folder);
}

/** Whether a folder has a mark, whoever made it. */
export function isMarked(folder: string): boolean {
  if (GIT_FOLDER.test(folder)) return false;
  return MARKS.some((mark) => existsSync(join(folder, mark)));
}

/** Whether a path lies in a dot folder directly in the home folder. */
export function isBelowSettings(folder: string, home: string): boolean {
  return isWithin(folder, home) && folder.slice(home.length + 1).startsWith(".");
}

/** Returns the reason why a real path can never be a project; undefined without a reason. `stat` saves another stat call. */
export function neverBecause(
  folder: string,
  rules: ProjectRules,
  stat = folderAt(folder).stat,
): string | undefined {
  const protects = protectedBecause(folder, rules, stat);
  if (protects !== undefined) return protects;
  if (isBelowSettings(folder, rules.home) && !isMarked(folder)) {
    return "it is in a settings folder of the home folder, and has no .git or .substrate-profile";
  }
  if (!rules.roots.some((root) => isWithin(folder, root)) && rules.roots.length > 0) {
    return "it is not at or below any folder of 'projects' in config.yaml";
  }
  const owner = stat?.uid;
  return owner === rules.uid
    ? undefined
    : `it belongs to user ${owner} and the broker runs as user ${rules.uid}`;
}

/** Returns the reason why a real path may never be made writable, by project or grant; undefined without a reason. */
export function protectedBecause(
  folder: string,
  rules: ProjectRules,
  stat = rules.known === undefined ? undefined : folderAt(folder).stat,
): string | undefined {
  return protectedByPath(folder, rules) ?? protectedByName({ real: folder, stat }, rules);
}

/** Checks every other name of the folder: a second mount of the home is the home. */
function protectedByName(folder: Folder, rules: ProjectRules): string | undefined {
  const { known, home } = rules;
  if (known === undefined || folder.stat === undefined) return undefined;
  for (const { how, name } of known.secondNames.of(folder.real, identityOf(folder))) {
    const isElsewhere = (place: string): boolean => isWithin(name, place) && !isWithin(folder.real, place);
    const usual =
      how === "is"
        ? `it is ${quoted(name)} under another name`
        : `it holds ${quoted(name)} under another name`;
    const why = protectedByPath(name, rules);
    if (why !== undefined) return `${usual}, and ${why}`;
    if (isBelowSettings(name, home)) return `${usual}, in a settings folder of the home folder`;
    if (isElsewhere(home) || known.listed.some(isElsewhere)) return `${usual}: use that path`;
    if (known.marks.isInUsed(name) && !known.marks.isInUsed(folder.real)) return `${usual}: use that path`;
  }
  return undefined;
}

function protectedByPath(folder: string, rules: ProjectRules): string | undefined {
  if (isWithin(rules.home, folder))
    return folder === rules.home ? "it is the home folder itself" : "it contains the home folder";
  if (dirname(folder) === rules.home && folder.slice(rules.home.length + 1).startsWith(".")) {
    return "it is a settings folder (it begins with a dot, directly in the home folder)";
  }
  if (SYSTEM.test(folder) || BELOW_SYSTEM.test(folder)) return "it is a system folder";
  if (GIT_FOLDER.test(folder)) return "it is git's own folder, where hooks and settings are programs";
  if (isWithin(rules.installation, folder) && folder !== rules.installation) {
    return `it contains the installation of Substrate ('${rules.installation}')`;
  }
  for (const path of rules.hidden) {
    if (isWithin(path, folder)) return `it contains SUBSTRATE_HOME ('${path}')`;
    if (isWithin(folder, path)) return `it is in SUBSTRATE_HOME ('${path}')`;
  }
  return undefined;
}

function identityOf({ stat }: Folder): string {
  return stat === undefined ? "gone" : `${stat.dev}:${stat.ino}`;
}
