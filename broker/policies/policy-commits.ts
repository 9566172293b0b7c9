/** Finds the commit of the policy content in force (the spans' `policy_commit`), which may differ from the folder's current commit. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { basename, dirname } from "node:path";
import { type GitHeads, repositoryAround } from "../git/head.ts";
import { realPath } from "../model/host-paths.ts";

/** Lifetime of a file's repository in the cache, in milliseconds: a person may turn the folder into a repository. */
const BELIEVED_MS = 500;

/** Git answers in about 3 ms, and is asked once for each content and commit. */
const PATIENCE_MS = 2000;

type Place = { readonly real: string; readonly repository: string | null; readonly until: number };

type Known = { readonly text: string; readonly head: string | null; readonly commit: string | null };

export class PolicyCommits {
  readonly #heads: Pick<GitHeads, "of">;
  readonly #path: string;
  readonly #places = new Map<string, Place>();
  readonly #known = new Map<string, Known>();

  /** @param path PATH on which git is found. */
  constructor(heads: Pick<GitHeads, "of">, path: string) {
    this.#heads = heads;
    this.#path = path;
  }

  /**
   * Returns the commit with `text`, byte for byte, as content of `file`: the repository's current commit, or, if its content
   * differs, the last commit seen with the text. Null outside a repository, and for uncommitted content.
   */
  of(file: string, text: string): string | null {
    const { real, repository } = this.#placeOf(file);
    const head = repository === null ? null : this.#heads.of(repository);
    const known = this.#known.get(file);
    const isSame = known?.text === text;
    if (isSame && known.head === head) return known.commit;
    const before = isSame ? known.commit : null;
    const commit = head !== null && this.#holds(real, head, text) ? head : before;
    this.#known.set(file, { text, head, commit });
    return commit;
  }

  /** Forgets the repository of a file read again. */
  forget(file: string): void {
    this.#places.delete(file);
  }

  #placeOf(file: string): Place {
    const known = this.#places.get(file);
    if (known !== undefined && performance.now() < known.until) return known;
    // A missing file: the policy in force was read from the unresolved path.
    const real = realPath(file) ?? file;
    const place = { real, repository: repositoryAround(real), until: performance.now() + BELIEVED_MS };
    this.#places.set(file, place);
    return place;
  }

  #holds(real: string, head: string, text: string): boolean {
    const blob = this.#blobAt(real, head);
    return blob !== null && blob === blobId(text, blob.length === 64 ? "sha256" : "sha1");
  }

  /**
   * Asks git, since only git reads packed objects. `rev-parse` of a commit's path runs no program from a repository's settings:
   * no hook, filter, pager or monitor. Missing objects are not fetched.
   */
  #blobAt(real: string, head: string): string | null {
    const name = `${head}:./${basename(real)}`;
    try {
      const blob = execFileSync("git", ["-C", dirname(real), "rev-parse", "--verify", "--quiet", name], {
        env: {
          PATH: this.#path,
          LC_ALL: "C",
          GIT_CONFIG_NOSYSTEM: "1",
          GIT_CONFIG_GLOBAL: "/dev/null",
          GIT_ALLOW_PROTOCOL: "none",
          GIT_NO_LAZY_FETCH: "1",
          GIT_NO_REPLACE_OBJECTS: "1",
        },
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
        timeout: PATIENCE_MS,
        killSignal: "SIGKILL",
      });
      return blob.trim();
    } catch {
      // Not in the commit, or git is missing, too slow or rejects the folder's owner, ignoring: no commit is known.
      return null;
    }
  }
}

/** Hashes like git's own objects (gitformat-loose(5)). */
function blobId(text: string, algorithm: "sha1" | "sha256"): string {
  const bytes = Buffer.from(text, "utf8");
  return createHash(algorithm).update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
}
