/**
 * Held changes that would lead git to programs a command wrote: `.git` files and links, and git folders with names that no list has.
 * A plain command's are judged when it ends (git/brought.ts); nobody judges what an agent's apply or `changes.auto_apply` brings.
 */
import { lstatSync } from "node:fs";
import { posix } from "node:path";
import { coverOf, type HeldChange } from "../../world/backend.ts";
import { sealedInside } from "../policy/files/default-denials.ts";

/** A git folder as git knows one (setup.c, is_git_directory): these, where `commondir` stands for the last two. */
const HEAD = "HEAD";
const COMMON = "commondir";
const PARTS = ["objects", "refs"] as const;

/** Stands for a git folder in the patterns of what git runs. */
const ANY = "/folder";

/** Beside settings and hooks, the legacy folders of addresses (gitrepository-layout(5)): an address may name a program. */
const RUNS = [...sealedInside(ANY), `${ANY}/remotes`, `${ANY}/branches`].map(coverOf);

/** Returns why only the operator may apply a byte path; undefined for other paths. `changes`: applied together. */
export function ledByGit(
  project: string,
  changes: readonly HeldChange[],
): (path: string) => string | undefined {
  const kinds = new Map(changes.map(({ path, kind }) => [path, kind]));
  const there = new Set<string>();
  for (const { path, kind } of changes)
    if (kind !== "delete") for (const one of [path, ...foldersOver(path)]) there.add(one);
  const stands = (path: string): boolean => isThere(project, path);
  const wasGitFolder = once((folder: string) => isGitFolder(folder, stands));
  const willBe = once((folder: string) => isGitFolder(folder, (path) => there.has(path) || stands(path)));
  return (path) => {
    // A folder that is applied for the sake of something below it has no change of its own among them.
    const kind = kinds.get(path) ?? "dir";
    if (kind === "delete") return undefined;
    if (posix.basename(path) === ".git" && kind !== "dir")
      return "it leads git to another folder, and git runs what that folder names";
    for (const folder of [...foldersOver(path), ""]) {
      // Most folders are none, and the patterns below cost more than this.
      if (!willBe(folder)) continue;
      const below = folder === "" ? path : path.slice(folder.length + 1);
      const makes = [HEAD, COMMON, ...PARTS].includes(below) && !wasGitFolder(folder);
      if (makes || RUNS.some((cover) => cover.covers(`${ANY}/${below}`)))
        return "git takes the folder for a repository, and runs what its settings and hooks name";
    }
    return undefined;
  };
}

function isGitFolder(folder: string, has: (path: string) => boolean): boolean {
  const at = (name: string): boolean => has(folder === "" ? name : `${folder}/${name}`);
  return at(HEAD) && (at(COMMON) || PARTS.every(at));
}

function foldersOver(path: string): string[] {
  const folders: string[] = [];
  for (let slash = path.lastIndexOf("/"); slash > 0; slash = path.lastIndexOf("/", slash - 1))
    folders.push(path.slice(0, slash));
  return folders;
}

function isThere(project: string, path: string): boolean {
  try {
    lstatSync(Buffer.concat([Buffer.from(`${project}/`), Buffer.from(path, "latin1")]));
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code !== "ENOENT" && code !== "ENOTDIR";
  }
}

function once(decide: (folder: string) => boolean): (folder: string) => boolean {
  const known = new Map<string, boolean>();
  return (folder) => {
    const before = known.get(folder);
    if (before !== undefined) return before;
    const decided = decide(folder);
    known.set(folder, decided);
    return decided;
  };
}
