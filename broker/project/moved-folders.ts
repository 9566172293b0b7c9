/**
 * Searches a folder that a command wants to move for a person's git folders. A search alternates with the broker's other work and
 * ends with one uninterrupted pass, so that the answer is correct at that moment, whatever changed meanwhile.
 */
import { BoundedMap } from "../model/bounded-map.ts";
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { PROFILE_FILE } from "./profiles.ts";

/** A folder with more subfolders must not be moved. */
const MOST_FOLDERS = 4000;

/** Bound on changed folders read again by the last pass; beyond, another search comes first. */
const MOST_CHANGED = 100;

/** Length of a turn in milliseconds, before the broker's other work gets a turn. */
const TURN_MS = 5;

/** A longer search, with the wait for earlier searches, forbids the move. */
const PATIENCE_MS = 2000;

/** File times lag by up to a kernel tick (1 to 10 ms), so a change within a tick may leave the time unchanged. */
const TICK_NS = 10_000_000n;

const MOST_REMEMBERED = 100;

/** Entries that identify a git folder under any name: a project's git folder may have another name than `.git`. */
const GIT_PARTS = ["HEAD", "objects", "refs"] as const;

/** Contents of a folder. */
type Seen = { readonly isGit: boolean; readonly below: readonly string[] };

export class MovedFolders {
  readonly #isMade: (folder: string) => boolean;
  readonly #looks = new Map<string, Promise<boolean>>();
  /** Refused folders, each with the person's git folder found inside. */
  readonly #refused = new BoundedMap<string, string>(MOST_REMEMBERED);
  #last: Promise<unknown> = Promise.resolve();

  /** @param isMade whether a command made the git folder currently there. */
  constructor(isMade: (folder: string) => boolean) {
    this.#isMade = isMade;
  }

  /** Whether all git folders at or below a folder were made by commands, and no person chose a policy there. Never rejects. */
  mayMove(folder: string): Promise<boolean> {
    if (this.#isRefusedStill(folder)) return Promise.resolve(false);
    const looking = this.#looks.get(folder);
    if (looking !== undefined) return looking;
    const until = performance.now() + PATIENCE_MS;
    const look = this.#last.then(() => this.#look(folder, until)).finally(() => this.#looks.delete(folder));
    this.#looks.set(folder, look);
    this.#last = look;
    return look;
  }

  /** Whether the git folder behind the last refusal is still there: a cheap check before a full search. */
  #isRefusedStill(folder: string): boolean {
    const inTheWay = this.#refused.get(folder);
    if (inTheWay === undefined) return false;
    if (isGitFolder(inTheWay) && !this.#isMade(inTheWay)) return true;
    this.#refused.delete(folder);
    return false;
  }

  async #look(folder: string, until: number): Promise<boolean> {
    const look = new Look(folder, this.#isMade);
    while (performance.now() < until) {
      const found = await look.inTurns(until);
      if (found !== undefined) this.#remember(folder, found);
      if (found !== undefined) return false;
      const last = look.atOnce();
      if (last !== "changed") return last;
    }
    return false;
  }

  #remember(folder: string, inTheWay: string): void {
    if (!isGitFolder(inTheWay)) return;
    this.#refused.set(folder, inTheWay);
  }
}

class Look {
  readonly #folder: string;
  readonly #isMade: (folder: string) => boolean;
  /** `identity` changes with the folder's contents. */
  readonly #seen = new Map<string, Seen & { readonly identity: string }>();
  #read = 0;

  constructor(folder: string, isMade: (folder: string) => boolean) {
    this.#folder = folder;
    this.#isMade = isMade;
  }

  /** Searches in turns. Returns the path that forbids the move: the folder itself when too large, or when time is up. */
  async inTurns(until: number): Promise<string | undefined> {
    const pass = this.#pass();
    for (let turn = performance.now() + TURN_MS; ; ) {
      const { done, value } = pass.next();
      if (done === true) return value;
      if (performance.now() < turn) continue;
      if (performance.now() > until) return this.#folder;
      await nextTurn();
      turn = performance.now() + TURN_MS;
    }
  }

  /** Searches again without a pause, so that the answer is current. */
  atOnce(): boolean | "changed" {
    this.#read = 0;
    const pass = this.#pass();
    for (;;) {
      const { done, value } = pass.next();
      if (done === true) return value === undefined;
      if (this.#read > MOST_CHANGED) return "changed";
    }
  }

  *#pass(): Generator<undefined, string | undefined> {
    const folders = [this.#folder];
    for (let at = 0; at < folders.length; at += 1) {
      const here = folders[at] ?? this.#folder;
      if (at === MOST_FOLDERS) return this.#folder;
      const seen = this.#see(here);
      if (seen === undefined) return here;
      // Worktrees and submodules inside a git folder belong to that repository and are not searched.
      if (seen.isGit && !this.#isMade(here)) return here;
      if (!seen.isGit) folders.push(...seen.below);
      yield;
    }
    return undefined;
  }

  /** Reads a folder; undefined when unreadable, or when a person's profile file chooses a policy there. */
  #see(folder: string): Seen | undefined {
    try {
      const now = BigInt(Date.now()) * 1_000_000n;
      const { dev, ino, ctimeNs } = lstatSync(folder, { bigint: true });
      const identity = [dev, ino, ctimeNs].join(":");
      const known = this.#seen.get(folder);
      if (known?.identity === identity) return known;
      this.#read += 1;
      const seen = folder.endsWith(".git") ? { isGit: true, below: [] } : read(folder);
      if (seen !== undefined && ctimeNs < now - TICK_NS) this.#seen.set(folder, { ...seen, identity });
      return seen;
    } catch {
      return undefined;
    }
  }
}

function read(folder: string): Seen | undefined {
  const entries = readdirSync(folder, { withFileTypes: true });
  const names = new Set(entries.map(({ name }) => name));
  if (GIT_PARTS.every((part) => names.has(part))) return { isGit: true, below: [] };
  if (names.has(PROFILE_FILE)) return undefined;
  const below = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
  return { isGit: false, below };
}

function isGitFolder(folder: string): boolean {
  try {
    const parts = folder.endsWith(".git") ? [""] : GIT_PARTS;
    return parts.every((name) => lstatSync(join(folder, name), { throwIfNoEntry: false }) !== undefined);
  } catch {
    return false;
  }
}
