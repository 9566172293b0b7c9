/** Decides why git would run code because of a path: settings, hooks, addresses, and links to other git folders. */
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { lookAt } from "../model/host-paths.ts";
import { literalPattern } from "../policy/files/file-scope.ts";
import { namesCode } from "./commands.ts";
import { gitSettings, treeSettings } from "./config.ts";
import { runsCode } from "./harmless-settings.ts";
import { leadsAstray, MAX_CONFIG, worksAtHome, worksElsewhere } from "./links.ts";
import type { Outside } from "./opened.ts";
import { isPausedState, PAUSED_FOLDERS, pausedWhy } from "./paused.ts";
import { isPlainAddress } from "./safe-settings.ts";
import type { MadeRepositories } from "./made-repositories.ts";
import { readSmallFile } from "../model/small-file.ts";

const NOBODY_KNOWS = "the programs that git would run because of it are unknown";

/**
 * Why git would run code at a path relative to the project, or read settings outside all checks. `stood`: the path
 * existed before the command.
 */
export function whyNot(path: string, stood: boolean, brought: GitJudge): string | undefined {
  const { project, uid } = brought;
  const place = join(project, path);
  const folder = dirname(place);
  if (basename(place).endsWith(".git")) return linkWhy(place, brought);
  if (basename(folder) === "hooks") return hookWhy(place);
  if (ADDRESS_FOLDERS.has(basename(folder)) && isGitFolder(dirname(folder))) return addressWhy(place, uid);
  if (isPausedState(place) && isGitFolder(dirname(folder))) return pausedWhy(place, uid);
  if (LINKED.has(basename(place)) && isGitFolder(folder)) return folderLinkWhy(place);
  if (basename(place) === "hooks" || ADDRESS_FOLDERS.has(basename(place))) return undefined;
  // An older file outside a git folder that merely has such a name is the person's.
  if (stood && !isGitFolder(folder)) return undefined;
  switch (basename(place)) {
    case "HEAD":
      return stood ? undefined : headWhy(folder, brought);
    case "objects":
    case "refs":
      return stood || !isGitFolder(folder) ? undefined : headWhy(folder, brought);
    case "commondir":
      return isGitFolder(folder) ? commonWhy(place, brought) : undefined;
    default:
      return settingsWhy(place, uid, isGitFolder(folder));
  }
}

type LinkJudge = Pick<Outside, "project" | "uid"> & {
  readonly made: Pick<MadeRepositories, "isMade" | "unsealedIn">;
  /** The world's sealed patterns; a git folder under another name has its own. */
  readonly sealed: readonly string[];
};

/** `gitFolder`: its settings and hooks are denied, wherever the folder lies. */
export type GitJudge = LinkJudge & Pick<Outside, "gitFolder">;

/** Whether changes of code in this folder are always noticed or prevented. */
function isLookedAt(folder: string, { made, sealed }: LinkJudge): boolean {
  return made.isMade(folder) || isSealedAs(folder, sealed);
}

function isSealedAs(gitFolder: string, sealed: readonly string[]): boolean {
  return sealed.includes(literalPattern(join(gitFolder, "config")));
}

/** Git ignores a plain file not named `.git`. */
function linkWhy(place: string, brought: LinkJudge): string | undefined {
  const isFollowed = basename(place) === ".git" || lookAt(place)?.isSymbolicLink() === true;
  if (!isFollowed) return undefined;
  if (leadsAstray(place, brought, (folder) => isLookedAt(folder, brought)))
    return "it leads git to a folder where any command could change what git runs";
  return worksElsewhere(place, brought.uid) ? OTHER_FILES : undefined;
}

/** A HEAD turns a folder into a git folder, so settings written before the HEAD are judged now. */
function headWhy(folder: string, brought: GitJudge): string | undefined {
  const { uid } = brought;
  return (
    settingsWhy(join(folder, "config"), uid, true) ??
    settingsWhy(join(folder, "config.worktree"), uid, true) ??
    hooksWhy(join(folder, "hooks")) ??
    addressesWhy(folder, uid) ??
    commonWhy(join(folder, "commondir"), brought)
  );
}

/** Why a new git folder may not keep its hooks: a command wrote the hooks before the HEAD that makes git read them. */
function hooksWhy(hooks: string): string | undefined {
  return (
    folderLinkWhy(hooks) ?? (namesIn(hooks).some((name) => !name.endsWith(".sample")) ? HOOKS : undefined)
  );
}

function folderLinkWhy(folder: string): string | undefined {
  return lookAt(folder)?.isSymbolicLink() === true
    ? `it leads git to ${basename(folder)} in another folder`
    : undefined;
}

/**
 * Legacy folders for a remote's address (gitrepository-layout(5)), used by git for a remote without `remote.NAME.url`.
 */
const ADDRESS_FOLDERS: ReadonlySet<string> = new Set(["remotes", "branches"]);

/** Folders in a git folder that must not be links. */
const LINKED: ReadonlySet<string> = new Set(["hooks", ...ADDRESS_FOLDERS, ...PAUSED_FOLDERS]);

function addressesWhy(gitFolder: string, uid: number): string | undefined {
  for (const folder of [...ADDRESS_FOLDERS].map((name) => join(gitFolder, name))) {
    const why =
      folderLinkWhy(folder) ??
      namesIn(folder)
        .map((name) => addressWhy(join(folder, name), uid))
        .find((found) => found !== undefined);
    if (why !== undefined) return why;
  }
  return undefined;
}

function addressWhy(place: string, uid: number): string | undefined {
  const stat = lookAt(place);
  if (stat === undefined || stat.isDirectory()) return undefined;
  const text = stat.nlink > 1 ? undefined : readSmallFile(place, MAX_CONFIG, uid);
  if (text === undefined) return NOBODY_KNOWS;
  const addresses = text.split("\n").map((line) => line.replace(/^(?:URL|Push|Pull):/, "").trim());
  return addresses.every(isPlainAddress) ? undefined : "an address in it may name a program for git to run";
}

const HOOKS = "git runs it by itself, and a repository that a command makes has no hooks";

export function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // Missing or unreadable: git cannot read the folder either.
    return [];
  }
}

/**
 * Why a `commondir` is refused. Git's own (`git worktree add`) leads two folders up; any other may lead to unjudged
 * settings.
 */
export function commonWhy(place: string, brought: GitJudge): string | undefined {
  const { uid, gitFolder, sealed } = brought;
  const stat = lookAt(place);
  if (stat === undefined || stat.isDirectory()) return undefined;
  const worktrees = dirname(dirname(place));
  const common = dirname(worktrees);
  const isOwn =
    // A hard link could be written later under its other name.
    stat.nlink === 1 &&
    readSmallFile(place, 4096, uid)?.trim() === "../.." &&
    basename(worktrees) === "worktrees" &&
    realOf(dirname(place)) === dirname(place);
  if (!isOwn) return "it leads git to the settings and hooks of another folder";
  if (common.endsWith(".git") || common === gitFolder || isSealedAs(common, sealed)) return undefined;
  if (!existsSync(join(common, "HEAD"))) return NOBODY_KNOWS;
  return (
    settingsWhy(join(common, "config"), uid, true) ??
    hooksWhy(join(common, "hooks")) ??
    addressesWhy(common, uid)
  );
}

function hookWhy(place: string): string | undefined {
  const stat = lookAt(place);
  // Includes a file that is not executable: a later command or a kept process could simply change its mode.
  const runs = stat?.isSymbolicLink() === true || stat?.isFile() === true;
  if (!runs || place.endsWith(".sample") || !isGitFolder(dirname(dirname(place)))) return undefined;
  return HOOKS;
}

function settingsWhy(place: string, uid: number, inGitFolder: boolean): string | undefined {
  const stat = lookAt(place);
  if (stat === undefined || stat.isDirectory()) return undefined;
  // A hard link could be written later under its other name, and only the other name would be listed.
  const text = inGitFolder && stat.nlink > 1 ? undefined : readSmallFile(place, MAX_CONFIG, uid);
  const settings = text === undefined ? undefined : gitSettings(text);
  if (settings === undefined) return inGitFolder ? NOBODY_KNOWS : undefined;
  // Other programs have files of this name and format. In a git folder the whole file is judged.
  const found = settings.find(inGitFolder ? runsCode : namesCode);
  if (found !== undefined) return `git may run what its '${found.name}' names`;
  // Git sets it for a submodule, whose folder leads back. For any other folder the person's next `git reset --hard` would write the
  // command's files there.
  const tree = inGitFolder && text !== undefined ? treeSettings(text)?.worktree : undefined;
  const isOwn = tree === undefined || (OF_SUBMODULE.test(place) && worksAtHome(dirname(place), tree, uid));
  return isOwn ? undefined : OTHER_FILES;
}

const OF_SUBMODULE = /\.git\/(?:[^/]+\/)*modules\//;

const OTHER_FILES = "git would work on the files of another folder, which its 'core.worktree' names";

/**
 * Whether a folder is, or may become, a git folder. Git requires HEAD, objects and refs, but no HEAD behind a
 * `commondir`. Later commands may add the missing parts; then HEAD, or the `commondir` below `worktrees`, is judged.
 */
function isGitFolder(folder: string): boolean {
  const has = (name: string): boolean => lookAt(join(folder, name)) !== undefined;
  return folder.endsWith(".git") || has("HEAD") || has("worktrees") || (has("objects") && has("refs"));
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
