/**
 * Remembers git folders made by commands. They are sealed like a person's, but commands may also remove them (`git
 * clone`, a look, `rm -rf`): the same command, a later one, or one in another world. Known by device, inode and birth
 * time, so a person's new folder in the same place belongs to the person.
 */
import { type BigIntStats, lstatSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Database, RootDatabase } from "lmdb";
import type { FsDiff } from "../../schemas/generated/types.ts";
import type { RemovalJudge } from "../../world/backend.ts";
import { isWithin } from "../model/folders.ts";
import { gitSettings } from "./config.ts";
import { runsCode } from "./harmless-settings.ts";
import { MovedFolders } from "../project/moved-folders.ts";
import { PROFILE_FILE } from "../project/profiles.ts";
import { readSmallFile } from "../model/small-file.ts";
import type { OnFault } from "../spans/span-index.ts";

/** The oldest are forgotten; then only a person can remove them. */
const MOST_KNOWN = 10_000;

/** Git's own settings take some hundred bytes. */
const MAX_CONFIG = 1024 * 1024;

/** Each unsealed folder is checked again at the end of each command in its project. */
const MOST_UNSEALED = 100;

/** File timestamps lag by up to a kernel tick (1 to 10 ms). */
const TICK_MS = 10;

/** Entries of a git folder: a worktree's link to shared settings (`worktrees/NAME`), or the folders of a repository. */
const PARTS = [["commondir"], ["objects", "refs"]] as const;

export class MadeRepositories implements RemovalJudge {
  readonly #kept: Database<number, string>;
  readonly #onFault: OnFault;
  /** Order of creation by identity. */
  readonly #made = new Map<string, number>();
  /** Paths by identity of folders without a seal, since their names do not end in `.git`. */
  readonly #unsealed = new Map<string, string>();
  readonly #keptUnsealed: Database<string, string>;
  readonly #moved = new MovedFolders((folder) => this.isMade(folder));

  constructor(database: RootDatabase, onFault: OnFault) {
    this.#onFault = onFault;
    this.#kept = database.openDB({ name: "made-repositories" });
    const known = [...this.#kept.getRange()].toSorted((one, other) => one.value - other.value);
    for (const { key, value } of known) this.#made.set(key, value);
    this.#keptUnsealed = database.openDB({ name: "unsealed-repositories" });
    for (const { key } of known) {
      const folder = this.#keptUnsealed.get(key);
      if (folder !== undefined) this.#unsealed.set(key, folder);
    }
  }

  /**
   * Remembers the git folders that a command made: all identifying entries are new, and the folder is no older than the
   * command. A HEAD alone proves nothing: a command could remove and restore HEAD while a person clones.
   *
   * @param since start of the command, in milliseconds since 1970.
   */
  made({ writes, dirs }: Pick<FsDiff, "writes" | "dirs">, project: string, since: number): void {
    const brought = new Set([...writes, ...dirs]);
    for (const path of writes) {
      if (!/(?:^|\/)HEAD$/.test(path)) continue;
      const within = dirname(path);
      // The clock alone cannot tell: a command may start in the same tick as an earlier command's folder.
      if (within !== "." && !brought.has(within)) continue;
      const folder = join(project, within);
      const identity = identityOf(folder);
      if (identity === undefined) continue;
      const isNew =
        isBornSince(folder, since - TICK_MS) &&
        PARTS.some((names) => names.every((name) => brought.has(join(within, name))));
      if (isNew) this.#keep(identity);
      // Also a folder moved here by a command.
      if (this.#made.has(identity)) this.#watch(identity, folder);
    }
  }

  /**
   * Lists unsealed git folders made by commands at or below a project: later commands can change them under any name.
   */
  unsealedIn(project: string): readonly string[] {
    for (const [identity, folder] of this.#unsealed) if (isAnother(folder, identity)) this.#forget(identity);
    return [...this.#unsealed.values()].filter((folder) => isWithin(folder, project));
  }

  /**
   * Whether commands may remove a path. The innermost git folder decides: a command's folder around a person's
   * repository proves nothing about the inner repository.
   */
  mayRemove(path: string): boolean {
    if (basename(path) === PROFILE_FILE || runsByItself(path)) return false;
    for (let at = path; at !== dirname(at); at = dirname(at)) {
      if (this.isMade(at)) return true;
      if (at.endsWith(".git")) return false;
    }
    return false;
  }

  /**
   * Whether commands may move a folder. Folders inside a git folder stay: git finds worktrees and submodules by path.
   */
  async mayMove(folder: string): Promise<boolean> {
    if (
      dirname(folder)
        .split("/")
        .some((name) => name.endsWith(".git"))
    )
      return false;
    return await this.#moved.mayMove(folder);
  }

  /** Whether the present folder at this path was made by a command. */
  isMade(folder: string): boolean {
    const identity = identityOf(folder);
    return identity !== undefined && this.#made.has(identity);
  }

  #keep(identity: string): void {
    if (this.#made.has(identity)) return;
    const order = Math.max(0, [...this.#made.values()].at(-1) ?? 0) + 1;
    this.#made.set(identity, order);
    this.#save(this.#kept.put(identity, order));
    const [oldest] = this.#made.keys();
    if (this.#made.size <= MOST_KNOWN || oldest === undefined) return;
    this.#made.delete(oldest);
    this.#save(this.#kept.remove(oldest));
    this.#forget(oldest);
  }

  #watch(identity: string, folder: string): void {
    if (folder.split("/").some((name) => name.endsWith(".git"))) return this.#forget(identity);
    if (this.#unsealed.get(identity) === folder) return;
    this.#unsealed.set(identity, folder);
    this.#save(this.#keptUnsealed.put(identity, folder));
    const [oldest] = this.#unsealed.keys();
    if (this.#unsealed.size > MOST_UNSEALED && oldest !== undefined) this.#forget(oldest);
  }

  #forget(identity: string): void {
    if (this.#unsealed.delete(identity)) this.#save(this.#keptUnsealed.remove(identity));
  }

  #save(saved: Promise<boolean>): void {
    saved.catch((error: unknown) =>
      this.#onFault("Cannot keep the list of repositories that commands made", error),
    );
  }
}

/** Whether git runs the file: commands cannot write such a file, so it belongs to a person. */
function runsByItself(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined || stat.isDirectory()) return false;
  if (basename(dirname(path)) === "hooks") return !path.endsWith(".sample");
  if (basename(path) !== "config" && basename(path) !== "config.worktree") return false;
  const text = readSmallFile(path, MAX_CONFIG, stat.uid);
  return (text === undefined ? undefined : gitSettings(text))?.some(runsCode) ?? true;
}

/** Whether a folder is new; false on a file system without birth times. */
function isBornSince(folder: string, since: number): boolean {
  try {
    return (lstatSync(folder, { throwIfNoEntry: false })?.birthtimeMs ?? 0) >= since;
  } catch {
    return false;
  }
}

/**
 * Whether another folder now stands at the path. False for a folder closed by its maker: a later command may reopen it.
 */
function isAnother(path: string, identity: string): boolean {
  try {
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return stat === undefined || fullIdentity(stat) !== identity;
  } catch {
    return false;
  }
}

function identityOf(path: string): string | undefined {
  try {
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
    return stat === undefined ? undefined : fullIdentity(stat);
  } catch {
    return undefined;
  }
}

function fullIdentity({ dev, ino, birthtimeNs }: BigIntStats): string {
  return [dev, ino, birthtimeNs].join(":");
}
