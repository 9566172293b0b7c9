/** The commit of the content that is in force (the spans' `policy_commit`), and not only the one that its folder is at. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { basename, dirname } from "node:path";
import { type GitHeads, repositoryAround } from "../git/head.ts";

/** Where a file lies is looked up again after this time: a person may make its folder a repository. */
const BELIEVED_MS = 500;

/** Git answers in some 3 ms, and is asked once for each content and commit. */
const PATIENCE_MS = 2000;

type Place = { readonly real: string; readonly repository: string | null; readonly until: number };

type Known = { readonly text: string; readonly head: string | null; readonly commit: string | null };

export class PolicyCommits {
  readonly #heads: Pick<GitHeads, "of">;
  readonly #path: string;
  readonly #places = new Map<string, Place>();
  readonly #known = new Map<string, Known>();

  /** `path`: where git is looked for. */
  constructor(heads: Pick<GitHeads, "of">, path: string) {
    this.#heads = heads;
    this.#path = path;
  }

  /**
   * The commit that has `text`, byte for byte, in the place of `file`: the one that its repository is at now, or, when that says
   * something else, the last one that was seen to. Null outside a repository, and for what nobody has committed.
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

  /** The file was read anew, so it is looked up anew. */
  forget(file: string): void {
    this.#places.delete(file);
  }

  #placeOf(file: string): Place {
    const known = this.#places.get(file);
    if (known !== undefined && performance.now() < known.until) return known;
    const real = realOf(file);
    const place = { real, repository: repositoryAround(real), until: performance.now() + BELIEVED_MS };
    this.#places.set(file, place);
    return place;
  }

  #holds(real: string, head: string, text: string): boolean {
    const blob = this.#blobAt(real, head);
    return blob !== null && blob === blobId(text, blob.length === 64 ? "sha256" : "sha1");
  }

  /**
   * Asks git, which alone reads packed objects. `rev-parse` of a commit's path runs nothing that a repository's settings could
   * name: no hook, filter, pager or monitor; what is missing is not fetched.
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
      // Not in that commit, or git is missing, too slow or of another opinion about whose folder it is: no commit is known.
      return null;
    }
  }
}

/** Of git's own objects (gitformat-loose(5)). */
function blobId(text: string, algorithm: "sha1" | "sha256"): string {
  const bytes = Buffer.from(text, "utf8");
  return createHash(algorithm).update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
}

function realOf(file: string): string {
  try {
    return realpathSync.native(file);
  } catch {
    // Gone: what holds was read from there, and nothing more is known.
    return file;
  }
}
