/**
 * Looks through a folder that a command moves, for git folders of a person's. A look takes turns with the broker's other work, and
 * ends with one pass at once: the answer is true when it is given, whatever changed meanwhile.
 */
import { BoundedMap } from "../model/bounded-map.ts";
import { lstatSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { PROFILE_FILE } from "./profiles.ts";

/** A folder with more stays where it is. */
const MOST_FOLDERS = 4000;

/** Folders that the last pass reads again because they changed; with more, another look comes first. */
const MOST_CHANGED = 100;

/** The broker has others to serve: after that long a look takes a turn for them. */
const TURN_MS = 5;

/** A look that takes longer, with the wait for the looks before it, allows nothing. */
const PATIENCE_MS = 2000;

/** The clock of files is behind by up to a tick of the kernel (1 to 10 ms): such a change may leave the time as it was. */
const TICK_NS = 10_000_000n;

const MOST_REMEMBERED = 100;

/** What makes a folder one of git's, under any name: a project's own git folder may be called otherwise. */
const GIT_PARTS = ["HEAD", "objects", "refs"] as const;

/** What a folder holds. */
type Seen = { readonly isGit: boolean; readonly below: readonly string[] };

export class MovedFolders {
  readonly #isMade: (folder: string) => boolean;
  readonly #looks = new Map<string, Promise<boolean>>();
  /** By the folder that stays, a git folder of a person's in it. */
  readonly #refused = new BoundedMap<string, string>(MOST_REMEMBERED);
  #last: Promise<unknown> = Promise.resolve();

  /** @param isMade whether a command made the git folder that stands there now. */
  constructor(isMade: (folder: string) => boolean) {
    this.#isMade = isMade;
  }

  /** Whether commands made all git folders at or below a folder, and no person chose a policy there. Never rejects. */
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

  /** While the git folder stands that refused the last question, one look at it is enough. */
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
  /** `identity` changes with what the folder holds. */
  readonly #seen = new Map<string, Seen & { readonly identity: string }>();
  #read = 0;

  constructor(folder: string, isMade: (folder: string) => boolean) {
    this.#folder = folder;
    this.#isMade = isMade;
  }

  /** Returns what is in the way: the folder itself, when it is too large or the time is over. */
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

  /** Looks once more without a pause: the answer is true now. */
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
      // Worktrees and submodules inside a git folder belong to that repository: they are not looked at.
      if (seen.isGit && !this.#isMade(here)) return here;
      if (!seen.isGit) folders.push(...seen.below);
      yield;
    }
    return undefined;
  }

  /** Undefined: it holds a person's choice of a policy, or it cannot be looked through. */
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
