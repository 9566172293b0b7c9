/**
 * Reads the current commit of a folder from git's own files (gitrepository-layout(5)). Git itself is not run: the
 * broker reads for each command, and git would run programs named in the project's settings.
 */
import { BoundedMap } from "../model/bounded-map.ts";
import { lstatSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { readSmallFile } from "../model/small-file.ts";

/** A ref has one line; `packed-refs` has a line per ref, about 50,000 in 4 MiB. */
const MAX_REF = 4096 + 16;
const MAX_PACKED = 4 * 1024 * 1024;

const MAX_KNOWN = 256;

const HASH = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

type Found = { readonly commit: string | null; readonly files: readonly string[] };
type Known = { readonly found: Found; readonly identity: string };

/** Reads commits, with a cache checked against the files read. */
export class GitHeads {
  readonly #uid: number;
  readonly #known = new BoundedMap<string, Known>(MAX_KNOWN);

  /** Ignores files not owned by `uid`. */
  constructor(uid: number) {
    this.#uid = uid;
  }

  /**
   * Returns the commit of the repository with its `.git` in `folder`; null without repository, before the first commit,
   * or when unreadable.
   */
  of(folder: string): string | null {
    const known = this.#known.get(folder);
    if (known !== undefined && known.identity === identityOf(known.found.files)) return known.found.commit;
    const found = findHead(folder, this.#uid);
    const identity = identityOf(found.files);
    // Caches only a repeated result: a commit made in between would be cached under its predecessor's hash.
    if (findHead(folder, this.#uid).commit === found.commit) this.#keep(folder, { found, identity });
    return found.commit;
  }

  /** Returns the commit of the nearest repository around a file. */
  around(file: string): string | null {
    const folder = repositoryAround(file);
    return folder === null ? null : this.of(folder);
  }

  #keep(folder: string, known: Known): void {
    this.#known.set(folder, known);
  }
}

/** Finds the nearest folder above a file with a `.git`. */
export function repositoryAround(file: string): string | null {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if (lstatSync(join(folder, ".git"), { throwIfNoEntry: false }) !== undefined) return folder;
    if (folder === "/") return null;
  }
}

/** Returns the folder with `HEAD` and `index` of the repository with its `.git` in `folder`, whether there is one or not. */
export function ownGitFolder(folder: string, uid: number): string {
  const git = join(folder, ".git");
  const pointer = /^gitdir: (.*)$/s.exec(line(git, uid) ?? "")?.[1];
  return pointer === undefined ? git : resolve(folder, pointer);
}

function findHead(folder: string, uid: number): Found {
  const git = join(folder, ".git");
  const own = ownGitFolder(folder, uid);
  const head = line(join(own, "HEAD"), uid);
  const files = [git, join(own, "HEAD")];
  const ref = /^ref: (refs\/.+)$/.exec(head ?? "")?.[1];
  if (ref === undefined || ref.split("/").includes(".."))
    return { commit: HASH.test(head ?? "") ? (head ?? null) : null, files };
  // All worktrees of a repository share its branches.
  const common = resolve(own, line(join(own, "commondir"), uid) ?? ".");
  const [loose, packed] = [join(common, ref), join(common, "packed-refs")];
  return { commit: looseRef(loose, uid) ?? packedRef(packed, ref, uid), files: [...files, loose, packed] };
}

function looseRef(path: string, uid: number): string | null {
  const hash = line(path, uid);
  return hash !== undefined && HASH.test(hash) ? hash : null;
}

function packedRef(path: string, ref: string, uid: number): string | null {
  const end = ` ${ref}`;
  const row = (readSmallFile(path, MAX_PACKED, uid) ?? "").split("\n").find((text) => text.endsWith(end));
  const hash = row?.slice(0, -end.length);
  return hash !== undefined && HASH.test(hash) ? hash : null;
}

function line(path: string, uid: number): string | undefined {
  return readSmallFile(path, MAX_REF, uid)?.replace(/[\r\n]+$/, "");
}

function identityOf(files: readonly string[]): string {
  return files.map(identityAt).join("\0");
}

function identityAt(path: string): string {
  try {
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return stat === undefined ? "-" : `${stat.ino}:${stat.mtimeNs}:${stat.ctimeNs}:${stat.size}`;
  } catch {
    // A part of the path is a file or a closed folder: counts as missing.
    return "-";
  }
}
