/**
 * The commit that a folder is at, read from git's own files (gitrepository-layout(5)). Git itself is not asked: this is on
 * the path of a command, and git would run what a project's settings say.
 */
import { BoundedMap } from "../model/bounded-map.ts";
import { lstatSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { readSmallFile } from "../model/small-file.ts";

/** A ref has one line; `packed-refs` has one for each ref, and 4 MiB are some 50,000. */
const MAX_REF = 4096 + 16;
const MAX_PACKED = 4 * 1024 * 1024;

const MAX_KNOWN = 256;

const HASH = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

type Found = { readonly commit: string | null; readonly files: readonly string[] };
type Known = { readonly found: Found; readonly identity: string };

/** What was found, kept while the files it was read from stay the same. */
export class GitHeads {
  readonly #uid: number;
  readonly #known = new BoundedMap<string, Known>(MAX_KNOWN);

  /** Files of other users than `uid` are not read. */
  constructor(uid: number) {
    this.#uid = uid;
  }

  /** The commit of the repository that `folder` has in its `.git`; null without one, before a first commit, or unread. */
  of(folder: string): string | null {
    const known = this.#known.get(folder);
    if (known !== undefined && known.identity === identityOf(known.found.files)) return known.found.commit;
    const found = findHead(folder, this.#uid);
    const identity = identityOf(found.files);
    // Only what is the same after its identity was taken: a commit made in between would be known as the one before.
    if (findHead(folder, this.#uid).commit === found.commit) this.#keep(folder, { found, identity });
    return found.commit;
  }

  /** The same for the nearest repository that a file lies in. */
  around(file: string): string | null {
    const folder = repositoryAround(file);
    return folder === null ? null : this.of(folder);
  }

  #keep(folder: string, known: Known): void {
    this.#known.set(folder, known);
  }
}

/** The nearest folder above a file that has a `.git`. */
export function repositoryAround(file: string): string | null {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if (lstatSync(join(folder, ".git"), { throwIfNoEntry: false }) !== undefined) return folder;
    if (folder === "/") return null;
  }
}

function findHead(folder: string, uid: number): Found {
  const git = join(folder, ".git");
  const pointer = /^gitdir: (.*)$/s.exec(line(git, uid) ?? "")?.[1];
  const own = pointer === undefined ? git : resolve(folder, pointer);
  const head = line(join(own, "HEAD"), uid);
  const files = [git, join(own, "HEAD")];
  const ref = /^ref: (refs\/.+)$/.exec(head ?? "")?.[1];
  if (ref === undefined || ref.split("/").includes(".."))
    return { commit: HASH.test(head ?? "") ? (head ?? null) : null, files };
  // Branches are shared by all worktrees of a repository.
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
    // A part of the path is no folder, or not ours to enter: as good as missing.
    return "-";
  }
}
