/**
 * Files that Substrate moved out of a project although git tracks them, say skills of a branch that a command checked out. Git shows
 * them as deleted, so the next `git add -A` or `git commit -a` records a deletion that nobody asked for: that command is told.
 */
import { join, relative } from "node:path";
import { BoundedMap } from "../model/bounded-map.ts";
import { lookExactlyAt } from "../model/host-paths.ts";
import { shellWord } from "../model/shell-word.ts";
import { readSmallFile } from "../model/small-file.ts";
import { ownGitFolder } from "./head.ts";

/** An index has about a hundred bytes for each file. */
const MAX_INDEX = 16 * 1024 * 1024;

const MAX_LOG = 4 * 1024 * 1024;

const MAX_PROJECTS = 64;

/** For each project: a `git clone` brings few, but a command may make any number of names. */
const MAX_PATHS = 100;

/** Names in a sentence. */
const MAX_NAMED = 5;

type Moved = {
  /** How many lines HEAD's log (git-reflog(1)) had when each file was moved; undefined until its command has ended. */
  readonly names: Map<string, number | undefined>;
  /** The index as it was last read. */
  seen: string;
};

export class MovedTracked {
  readonly #uid: number;
  readonly #moved = new BoundedMap<string, Moved>(MAX_PROJECTS);

  /** Reads files of the user `uid` only. */
  constructor(uid: number) {
    this.#uid = uid;
  }

  /** Takes note of a file or folder, an absolute path, that was moved out of a project. */
  add(project: string, path: string): void {
    const name = relative(project, path);
    if (name === "" || name.startsWith("../")) return;
    const moved = this.#moved.get(project) ?? { names: new Map<string, number | undefined>(), seen: "" };
    if (moved.names.size >= MAX_PATHS) return;
    moved.names.set(name, undefined);
    moved.seen = "";
    this.#moved.set(project, moved);
  }

  /**
   * Called at the end of each command. Returns what to tell it where it recorded one of the files as deleted, in the index or in a
   * commit. A file that is back, or that another branch does not have, is forgotten. An index of version 4 shares parts of
   * its paths, so its files look untracked.
   */
  recordedAsDeleted(project: string): string | undefined {
    const moved = this.#moved.get(project);
    if (moved === undefined) return undefined;
    const git = ownGitFolder(project, this.#uid);
    const stat = lookExactlyAt(join(git, "index"));
    const seen = stat === undefined ? "none" : `${stat.ino}:${stat.mtimeNs}:${stat.size}`;
    // Each command asks, and few change the index.
    if (seen === moved.seen) return undefined;
    moved.seen = seen;
    const index = readSmallFile(join(git, "index"), MAX_INDEX, this.#uid) ?? "";
    const log = (readSmallFile(join(git, "logs/HEAD"), MAX_LOG, this.#uid) ?? "").trimEnd().split("\n");
    const deleted: string[] = [];
    let before: string | undefined;
    for (const [name, known] of moved.names) {
      const isTracked = index.includes(`${name}/`) || index.includes(`${name}\0`);
      if (isTracked && lookExactlyAt(join(project, name)) === undefined) {
        if (known === undefined) moved.names.set(name, log.length);
        continue;
      }
      moved.names.delete(name);
      if (isTracked || known === undefined) continue;
      const steps = log.slice(known).filter(isStep);
      // HEAD went elsewhere: what is in the index now is of another commit.
      if (!steps.every((step) => COMMITTED.test(step))) continue;
      before ??= steps[0]?.split(" ", 1)[0];
      deleted.push(name);
    }
    if (moved.names.size === 0) this.#moved.delete(project);
    return deleted.length === 0 ? undefined : deletedWords(deleted, before);
  }
}

/** As git begins the message of a log line: `commit`, `commit (amend)`, `commit (merge)`. */
const COMMITTED = /\tcommit(?: \([a-z]+\))?: /;

/** Whether HEAD has another commit since: a line begins with the old one and the new one. */
function isStep(line: string): boolean {
  const [old, now] = line.split(" ", 2);
  return old !== now;
}

/** `before`: the commit before the first one that records the deletion; undefined where only the index does. */
function deletedWords(names: readonly string[], before: string | undefined): string {
  const some = names.slice(0, MAX_NAMED);
  const more = names.length > some.length ? ` and ${names.length - some.length} more` : "";
  const listed = `${some.map((name) => `'${name}'`).join(", ")}${more}`;
  const words = some.map(shellWord).join(" ");
  const back =
    before === undefined
      ? `'git restore --staged -- ${words}' takes that back`
      : `'git restore --source=${before.slice(0, 12)} --staged -- ${words}', then 'git commit --amend --no-edit' keeps the files in the branch`;
  return `git ${before === undefined ? "will commit" : "committed"} that ${listed} ${names.length === 1 ? "was" : "were"} deleted, but Substrate had moved the files away: ${back}`;
}
