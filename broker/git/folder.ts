/**
 * Finds the git folder of a project whose `.git` is a file: a worktree's in the main repository, a submodule's in the
 * parent project. Anyone working in the project can write such a file, so the named folder counts only if it points
 * back.
 */
import { BoundedMap } from "../model/bounded-map.ts";
import { fileIdentity, lookExactlyAt, realPath } from "../model/host-paths.ts";
import type { GitLink } from "../model/site.ts";
import { readdirSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { treeNamedIn } from "./links.ts";
import { isWithin, neverBecause, type ProjectRules } from "../project/projects.ts";
import { readSmallFile } from "../model/small-file.ts";

/**
 * A git folder that points back. `own` is the folder named in `.git`: `folder` itself, or a worktree's folder below.
 */
type Found = {
  readonly folder: string;
  readonly own: string;
  readonly shared: boolean;
  /** The files that prove the link. */
  readonly files: readonly string[];
};

type Known = { readonly found: Found; readonly identity: string; readonly link: GitLink };

/** `PATH_MAX` of Linux, the prefix and the line end. */
const MAX_POINTER = 4096 + 16;

const MAX_KNOWN = 256;

/**
 * Characters with a meaning in patterns of denied paths, or ending a line: a folder named so could not be protected.
 */
const UNFIT = /[*?[\]{}()!\\]|\p{Cc}/u;

/** Finds git folders, with a cache checked against all files involved, since every command asks. */
export class GitFolders {
  readonly #known = new BoundedMap<string, Known>(MAX_KNOWN);

  /** Returns the link; undefined when `.git` is not a file. `project` is a real path. */
  of(project: string, rules: () => ProjectRules): GitLink | undefined {
    const file = join(project, ".git");
    if (lookExactlyAt(file)?.isFile() !== true) return undefined;
    const now = rules();
    const known = this.#known.get(project);
    if (known !== undefined && known.identity === identityOf(known.found, now)) return known.link;
    this.#known.delete(project);
    const found = findGitFolder(project, now);
    const stat = found === undefined ? undefined : lookExactlyAt(found.folder);
    if (found === undefined || stat === undefined) return { file, folder: undefined };
    const { folder: path, shared } = found;
    const others = otherWorktrees(found, project, now.uid);
    const link = { file, folder: { path, shared, others, identity: `${stat.dev}:${stat.ino}` } };
    this.#keep(project, { found, identity: identityOf(found, now), link }, now);
    return link;
  }

  /**
   * Caches only a result that a second search repeats: files may change between the search and taking their identity.
   */
  #keep(project: string, known: Known, rules: ProjectRules): void {
    if (JSON.stringify(findGitFolder(project, rules)) !== JSON.stringify(known.found)) return;
    this.#known.set(project, known);
  }
}

/**
 * Returns the project's git folder if inside the project under another name (`git init --separate-git-dir`, or a `.git`
 * symlink): its settings and hooks need the same protection as those in `.git`. Undefined for any other folder, and for
 * `x.git`, already covered by name patterns.
 */
export function gitFolderInside(project: string, uid: number): string | undefined {
  const file = join(project, ".git");
  const stat = lookExactlyAt(file);
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

/** Identifies all files involved. Of the git folder only owner, inode and path count: each commit changes its times. */
function identityOf(found: Found, { roots }: ProjectRules): string {
  const files = found.files.map((path) => {
    const stat = lookExactlyAt(path);
    return stat === undefined ? "missing" : fileIdentity(stat);
  });
  const stat = lookExactlyAt(found.folder);
  const folder = stat === undefined ? "missing" : `${stat.dev}:${stat.ino}:${stat.uid}`;
  // Adding or removing a worktree changes the mtime of `worktrees`.
  const worktrees = String(lookExactlyAt(join(found.folder, "worktrees"))?.mtimeNs);
  return [realPath(found.own), folder, worktrees, ...files, ...roots].join("\0");
}

/** Finds the git folder of a project, if the folder itself names this project. */
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

/**
 * Reads `<common>/worktrees/<name>`: `gitdir` must name our `.git`, and `commondir` the folder shared by all worktrees.
 */
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

/** Lists other worktrees. A dangling `gitdir` counts too: its working tree may be on an unmounted disk. */
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
    // Missing or unreadable.
    return [];
  }
}

/** Reads `<parent project>/.git/modules/<path>`: `core.worktree` must name our folder. */
function asSubmodule(own: string, project: string, uid: number): Found | undefined {
  if (!/\/\.git\/(?:.+\/)?modules\/./.test(own)) return undefined;
  const files = [join(own, "config"), join(own, "config.worktree")] as const;
  const tree = treeNamedIn(own, uid);
  if (tree === undefined || tree === "") return undefined;
  return realPath(resolve(own, tree)) === project ? { folder: own, own, shared: false, files } : undefined;
}

/** Reads a single line; undefined when the file has line ends before its end. */
function readLine(path: string, uid: number): string | undefined {
  const line = readSmallFile(path, MAX_POINTER, uid)?.replace(/[\r\n]+$/, "");
  return line === undefined || line === "" || /\p{Cc}/u.test(line) ? undefined : line;
}

/** Whether a folder belongs to the user and is named by its real path: a link on the way could change later. */
function isOwnFolder(path: string, uid: number): boolean {
  const stat = lookExactlyAt(path);
  return stat?.isDirectory() === true && stat.uid === BigInt(uid) && realPath(path) === path;
}

/** Repeats git's own check (setup.c, `is_git_directory`): two matching files alone do not make a git folder. */
function isGitFolder(path: string, uid: number): boolean {
  const head = lookExactlyAt(join(path, "HEAD"));
  return (
    isOwnFolder(path, uid) &&
    head?.isFile() === true &&
    ["objects", "refs"].every((name) => isOwnFolder(join(path, name), uid))
  );
}

/** Returns the project folder of a git folder: the folder around `.git`, or a bare repository itself. */
export function aboveGit(folder: string): string {
  const at = `${folder}/`.indexOf("/.git/");
  return at === -1 ? folder : folder.slice(0, at) || "/";
}
