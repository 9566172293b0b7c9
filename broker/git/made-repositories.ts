/**
 * Git folders that commands made. They are sealed as those of a person are, but whoever may make one may take it away again
 * (`git clone`, a look, `rm -rf`): by the command that made it, by a later one, in another world. Known by device, inode and time of
 * birth, so that a folder which a person puts in the same place is the person's.
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

/** The oldest are forgotten: a person removes what is left of them. */
const MOST_KNOWN = 10_000;

/** Git's own are some hundred bytes. */
const MAX_CONFIG = 1024 * 1024;

/** Each is looked at again when a command of its project ends. */
const MOST_UNSEALED = 100;

/** The clock of files is behind by up to a tick of the kernel (1 to 10 ms). */
const TICK_MS = 10;

/** A git folder lists these instead of settings of its own (`worktrees/NAME`), or has them. */
const PARTS = [["commondir"], ["objects", "refs"]] as const;

export class MadeRepositories implements RemovalJudge {
  readonly #kept: Database<number, string>;
  readonly #onFault: OnFault;
  /** By identity, in which order they were made. */
  readonly #made = new Map<string, number>();
  /** Paths of those that no seal covers, since they are not called as git folders are, by identity. */
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
   * Takes the git folders that a command made in a project: those of which all that makes them one is new, and that are no older than
   * the command. A HEAD alone makes no folder a command's: it takes a person's away, and puts it back, while the person clones.
   *
   * @param since when the command began, in milliseconds since 1970.
   */
  made({ writes, dirs }: Pick<FsDiff, "writes" | "dirs">, project: string, since: number): void {
    const brought = new Set([...writes, ...dirs]);
    for (const path of writes) {
      if (!/(?:^|\/)HEAD$/.test(path)) continue;
      const within = dirname(path);
      // The clock alone does not tell: a command may begin in the tick in which an earlier one made the folder.
      if (within !== "." && !brought.has(within)) continue;
      const folder = join(project, within);
      const identity = identityOf(folder);
      if (identity === undefined) continue;
      const isNew =
        isBornSince(folder, since - TICK_MS) &&
        PARTS.some((names) => names.every((name) => brought.has(join(within, name))));
      if (isNew) this.#keep(identity);
      // Also one that a command moved here.
      if (this.#made.has(identity)) this.#watch(identity, folder);
    }
  }

  /** Git folders at or below a project that commands made and that no seal covers: later commands change them by any name. */
  unsealedIn(project: string): readonly string[] {
    for (const [identity, folder] of this.#unsealed) if (isAnother(folder, identity)) this.#forget(identity);
    return [...this.#unsealed.values()].filter((folder) => isWithin(folder, project));
  }

  /** The innermost git folder around it counts: what a command makes around a person's repository says nothing of that. */
  mayRemove(path: string): boolean {
    if (basename(path) === PROFILE_FILE || runsByItself(path)) return false;
    for (let at = path; at !== dirname(at); at = dirname(at)) {
      if (this.isMade(at)) return true;
      if (at.endsWith(".git")) return false;
    }
    return false;
  }

  /** What lies in a git folder stays there: git finds worktrees and submodules by their places. */
  async mayMove(folder: string): Promise<boolean> {
    if (
      dirname(folder)
        .split("/")
        .some((name) => name.endsWith(".git"))
    )
      return false;
    return await this.#moved.mayMove(folder);
  }

  /** Whether a command made the folder that stands there now. */
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
    saved.catch((error: unknown) => this.#onFault("Which repositories commands made cannot be kept", error));
  }
}

/** No command could write it there: the person who works in the repository did, or lets git run it. */
function runsByItself(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined || stat.isDirectory()) return false;
  if (basename(dirname(path)) === "hooks") return !path.endsWith(".sample");
  if (basename(path) !== "config" && basename(path) !== "config.worktree") return false;
  const text = readSmallFile(path, MAX_CONFIG, stat.uid);
  return (text === undefined ? undefined : gitSettings(text))?.some(runsCode) ?? true;
}

/** False where the file system knows no time of birth. */
function isBornSince(folder: string, since: number): boolean {
  try {
    return (lstatSync(folder, { throwIfNoEntry: false })?.birthtimeMs ?? 0) >= since;
  } catch {
    return false;
  }
}

/** False of a folder that its maker has closed: a later command may open it again. */
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
