/**
 * The git folder of a project whose `.git` is a file: a worktree's lies in the main repository, a submodule's in the project
 * above it. Whoever works in a project can write such a file, so it counts only when the folder it names points back.
 */
import { BoundedMap } from "../model/bounded-map.ts";
import type { GitLink } from "../model/site.ts";
import { type BigIntStats, lstatSync, readdirSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { treeSettings } from "./config.ts";
import { isWithin, neverBecause, type ProjectRules } from "../project/projects.ts";
import { readSmallFile } from "../model/small-file.ts";

/** A folder that points back: `own` is what `.git` names, the folder itself or a worktree's below it. */
type Found = {
  readonly folder: string;
  readonly own: string;
  readonly shared: boolean;
  /** What says so. */
  readonly files: readonly string[];
};

type Known = { readonly found: Found; readonly identity: string; readonly link: GitLink };

/** `PATH_MAX` of Linux, the words before it and the line's end. */
const MAX_POINTER = 4096 + 16;

/** 256 KiB: the config of a submodule has some hundred bytes, and some more for each branch that follows another. */
const MAX_CONFIG = 256 * 1024;

const MAX_KNOWN = 256;

/** What would be a pattern in a list of denied paths, or the end of a line: such a folder could not be protected. */
const UNFIT = /[*?[\]{}()!\\]|\p{Cc}/u;

/** What was found, kept while everything it rests on stays as it was: each command asks. */
export class GitFolders {
  readonly #known = new BoundedMap<string, Known>(MAX_KNOWN);

  /** Undefined when `.git` is no file. `project` is a real path. */
  of(project: string, rules: () => ProjectRules): GitLink | undefined {
    const file = join(project, ".git");
    if (look(file)?.isFile() !== true) return undefined;
    const now = rules();
    const known = this.#known.get(project);
    if (known !== undefined && known.identity === identityOf(known.found, now)) return known.link;
    this.#known.delete(project);
    const found = findGitFolder(project, now);
    const stat = found === undefined ? undefined : look(found.folder);
    if (found === undefined || stat === undefined) return { file, folder: undefined };
    const { folder: path, shared } = found;
    const others = otherWorktrees(found, project, now.uid);
    const link = { file, folder: { path, shared, others, identity: `${stat.dev}:${stat.ino}` } };
    this.#keep(project, { found, identity: identityOf(found, now), link }, now);
    return link;
  }

  /** Only what is the same after its identity was taken: a file that changed in between would be known as what it was. */
  #keep(project: string, known: Known, rules: ProjectRules): void {
    if (JSON.stringify(findGitFolder(project, rules)) !== JSON.stringify(known.found)) return;
    this.#known.set(project, known);
  }
}

/**
 * The project's git folder when it lies in the project under another name (`git init --separate-git-dir`, or a `.git` that is a
 * link): its settings and hooks are a person's as those in `.git` are. Undefined for every other, and for `x.git`, which lists of
 * names cover.
 */
export function gitFolderInside(project: string, uid: number): string | undefined {
  const file = join(project, ".git");
  const stat = look(file);
  if (stat === undefined || stat.isDirectory()) return undefined;
  const pointer = stat.isFile() ? /^gitdir: (.*)$/s.exec(readLine(file, uid) ?? "")?.[1] : file;
  const folder = pointer === undefined ? undefined : realPath(resolve(project, pointer));
  if (folder === undefined || folder === project || !isWithin(folder, project)) return undefined;
  const isNamed = folder
    .slice(project.length)
    .split("/")
    .some((name) => name.endsWith(".git"));
  return isNamed || UNFIT.test(folder) || !isGitFolder(folder, uid) ? undefined : folder;
}

/** A folder's times change with each commit: who owns it, which one it is and how it is reached do not. */
function identityOf(found: Found, { roots }: ProjectRules): string {
  const files = found.files.map((path) => {
    const stat = look(path);
    return stat === undefined
      ? "missing"
      : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
  });
  const stat = look(found.folder);
  const folder = stat === undefined ? "missing" : `${stat.dev}:${stat.ino}:${stat.uid}`;
  // A worktree that is added or removed changes the time of the folder around it.
  const worktrees = String(look(join(found.folder, "worktrees"))?.mtimeNs);
  return [realPath(found.own), folder, worktrees, ...files, ...roots].join("\0");
}

/** The folder that git writes to for this project, when it says itself that it is this project's. */
function findGitFolder(project: string, rules: ProjectRules): Found | undefined {
  const file = join(project, ".git");
  const pointer = /^gitdir: (.*)$/s.exec(readLine(file, rules.uid) ?? "")?.[1];
  if (pointer === undefined) return undefined;
  const own = resolve(project, pointer);
  if (!isOwnFolder(own, rules.uid)) return undefined;
  const found = asWorktree(own, project, rules.uid) ?? asSubmodule(own, project, rules.uid);
  if (found === undefined || UNFIT.test(found.folder) || isWithin(project, found.folder)) return undefined;
  if (!isGitFolder(found.folder, rules.uid)) return undefined;
  if (neverBecause(aboveGit(found.folder), rules) !== undefined) return undefined;
  return { ...found, files: [file, ...found.files] };
}

/** `<common>/worktrees/<name>`: its `gitdir` names our `.git`, its `commondir` the folder that all worktrees share. */
function asWorktree(own: string, project: string, uid: number): Found | undefined {
  if (basename(dirname(own)) !== "worktrees") return undefined;
  const common = dirname(dirname(own));
  const files = [join(own, "gitdir"), join(own, "commondir")] as const;
  const [back, shared] = files.map((path) => readLine(path, uid));
  if (back === undefined || shared === undefined || resolve(own, shared) !== common) return undefined;
  return realPath(resolve(own, back)) === join(project, ".git")
    ? { folder: common, own, shared: true, files }
    : undefined;
}

/** What leads nowhere counts too: the working tree may be on a disk that is not there now. */
function otherWorktrees({ folder, own }: Found, project: string, uid: number): readonly string[] {
  const worktrees = join(folder, "worktrees");
  return foldersIn(worktrees)
    .map((name) => join(worktrees, name))
    .filter((path) => {
      const back = readLine(join(path, "gitdir"), uid);
      return path !== own && (back === undefined || !isWithin(resolve(path, back), project));
    });
}

function foldersIn(path: string): readonly string[] {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
      .toSorted();
  } catch {
    // None, or closed to us.
    return [];
  }
}

/** `<project above>/.git/modules/<path>`: its `core.worktree` is our folder. */
function asSubmodule(own: string, project: string, uid: number): Found | undefined {
  if (!/\/\.git\/(?:.+\/)?modules\/./.test(own)) return undefined;
  const files = [join(own, "config"), join(own, "config.worktree")] as const;
  const settings = treeSettings(readSmallFile(files[0], MAX_CONFIG, uid) ?? "");
  if (settings === undefined) return undefined;
  const more = settings.worktreeConfig ? readSmallFile(files[1], MAX_CONFIG, uid) : undefined;
  const tree = (more === undefined ? undefined : treeSettings(more)?.worktree) ?? settings.worktree;
  if (tree === undefined || tree === "") return undefined;
  return realPath(resolve(own, tree)) === project ? { folder: own, own, shared: false, files } : undefined;
}

/** One line, as git writes it; line ends elsewhere than at its end make it none. */
function readLine(path: string, uid: number): string | undefined {
  const line = readSmallFile(path, MAX_POINTER, uid)?.replace(/[\r\n]+$/, "");
  return line === undefined || line === "" || /\p{Cc}/u.test(line) ? undefined : line;
}

/** A folder of that user's, by its real path: a link on the way could lead elsewhere a moment later. */
function isOwnFolder(path: string, uid: number): boolean {
  const stat = look(path);
  return stat?.isDirectory() === true && stat.uid === BigInt(uid) && realPath(path) === path;
}

/** What git itself asks of such a folder (setup.c, `is_git_directory`): any other one with two fitting files is none. */
function isGitFolder(path: string, uid: number): boolean {
  const head = look(join(path, "HEAD"));
  return (
    isOwnFolder(path, uid) &&
    head?.isFile() === true &&
    ["objects", "refs"].every((name) => isOwnFolder(join(path, name), uid))
  );
}

/** The folder that would be the project: what holds the `.git`, and a bare repository itself. */
export function aboveGit(folder: string): string {
  const at = `${folder}/`.indexOf("/.git/");
  return at === -1 ? folder : folder.slice(0, at) || "/";
}

/** What stands at a path, itself and not where it leads; undefined for what cannot be known. */
function look(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    // A name that is too long, or a folder that is not ours to enter: nothing that could be used.
    return undefined;
  }
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    // Missing, a loop, or not ours to enter: it is nobody's project then.
    return undefined;
  }
}
