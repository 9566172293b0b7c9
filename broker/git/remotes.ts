/**
 * Whose the remotes of a repository are. Commands may add remotes (`git remote add`), and that must neither open a host for them
 * (`@git`) nor lead a person's next push or pull elsewhere, also in several steps. So the broker keeps, for each settings file, the
 * addresses that commands added, and the remotes and branches that a person left there, including those that commands have removed.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readSmallFile } from "../model/small-file.ts";
import type { OnFault } from "../spans/span-index.ts";
import type { GitSetting } from "./config.ts";

/** One record for each settings file whose remotes or branches commands changed. */
const MOST_RECORDS = 10_000;

/** A record holds the routes of two versions of a file of at most 1 MiB. */
const MOST_BYTES = 8 * 1024 * 1024;

type Kept = {
  /** Hashes of the contents that this record knows: before and after the last change of a command. Any other one is a person's. */
  readonly contents: readonly string[];
  /** The routes that a person left, also those that commands have removed since. */
  readonly persons: readonly GitSetting[];
  /** Addresses that commands added. */
  readonly added: readonly string[];
  /** Commands could write the whole file, because there was no repository to seal. */
  readonly isOpen?: boolean;
};

const NOTHING: Kept = { contents: [], persons: [], added: [] };

/** A damaged record: nothing counts as a person's. */
const DAMAGED: Kept = { ...NOTHING, isOpen: true };

export class Remotes {
  readonly #folder: string;
  readonly #uid: number;
  readonly #onFault: OnFault;
  /** Notes that could not be kept: they hold until this process ends. */
  readonly #unkept = new Set<string>();

  /**
   * @param folder the records' folder; made when the first one is written
   * @param uid the broker's user
   * @param onFault told when a note cannot be kept
   */
  constructor(folder: string, uid: number, onFault: OnFault) {
    this.#folder = folder;
    this.#uid = uid;
    this.#onFault = onFault;
  }

  /** Whether an address in this settings file (a real path) was put there by a command, or could have been. */
  isCommands(path: string): (address: string) => boolean {
    const { added, isOpen } = this.#read(path) ?? NOTHING;
    const known = new Set(added);
    // Records hold bytes as Latin-1, and readers of the file decode them in their own way.
    const isOdd = (address: string): boolean => known.size > 0 && !/^[\x20-\x7e]*$/.test(address);
    const isFree = isOpen === true || this.#unkept.has(path);
    return (address) => isFree || known.has(address) || isOdd(address);
  }

  /** The file of a settings file's record, there or not. */
  recordOf(path: string): string {
    return join(this.#folder, `${hashOf(path)}.json`);
  }

  /** Notes that commands may write the file freely: a command begins where no repository stands, or a person applies one that a command made. */
  open(path: string): void {
    try {
      const kept = this.#read(path) ?? NOTHING;
      if (kept.isOpen !== true) this.#write(path, { ...kept, isOpen: true });
    } catch (error) {
      this.#unkept.add(path);
      this.#onFault("Cannot note that commands may have written a repository's remotes", error);
    }
  }

  /**
   * Returns the first setting of a command's new version that would lead a remote or branch of a person's elsewhere; undefined when
   * there is none. Then the addresses that the command adds are noted, before the host's file gets them. Throws when they cannot be.
   */
  ledElsewhere(
    path: string,
    host: { readonly text: string; readonly settings: readonly GitSetting[] },
    wanted: { readonly text: string; readonly settings: readonly GitSetting[] },
  ): GitSetting | undefined {
    const kept = this.#read(path);
    const added = new Set(kept?.added);
    const persons =
      kept?.contents.includes(hashOf(host.text)) === true
        ? kept.persons
        : host.settings.filter((one) => isRoute(one) && !(isAddress(one) && added.has(one.value)));
    const led = leadsAway(persons, host.settings, wanted.settings);
    if (led !== undefined) return led;
    const theirs = new Set(persons.filter(isAddress).map(({ value }) => value));
    const news = wanted.settings.filter(isAddress).flatMap(({ value }) => (theirs.has(value) ? [] : [value]));
    const still = host.settings.filter(isAddress).flatMap(({ value }) => (added.has(value) ? [value] : []));
    if (kept === undefined && news.length === 0 && hasAll(wanted.settings, persons)) return undefined;
    this.#write(path, {
      ...kept,
      contents: [hashOf(host.text), hashOf(wanted.text)],
      persons,
      added: [...new Set([...news, ...still])],
    });
    return undefined;
  }

  #read(path: string): Kept | undefined {
    const file = this.recordOf(path);
    const text = readSmallFile(file, MOST_BYTES, this.#uid);
    if (text === undefined)
      return this.#names().includes(file.slice(this.#folder.length + 1)) ? DAMAGED : undefined;
    try {
      return { ...NOTHING, ...(JSON.parse(text) as Partial<Kept>) };
    } catch {
      return DAMAGED;
    }
  }

  #write(path: string, kept: Kept): void {
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    const file = this.recordOf(path);
    if (this.#names().length >= MOST_RECORDS && this.#read(path) === undefined)
      throw new Error(
        `Commands have changed the remotes of ${MOST_RECORDS} repositories, which is the limit`,
      );
    const draft = `${file}.${process.pid}.tmp`;
    try {
      writeFileSync(draft, JSON.stringify(kept), { mode: 0o600, flush: true });
      renameSync(draft, file);
    } finally {
      rmSync(draft, { force: true });
    }
  }

  #names(): readonly string[] {
    try {
      return readdirSync(this.#folder);
    } catch {
      // No command has changed a remote yet.
      return [];
    }
  }
}

/** Whether the setting says where a push or a fetch goes. */
export function isRoute(setting: GitSetting): boolean {
  return isAddress(setting) || isOfBranch(setting);
}

function isAddress({ name }: GitSetting): boolean {
  return name === "remote.url" || name === "remote.pushurl";
}

function isOfBranch({ name }: GitSetting): boolean {
  return name === "branch.remote" || name === "branch.pushremote" || name === "branch.merge";
}

/** Finds a new address of a person's remote, or another remote or upstream of a person's branch. Removing either redirects nobody. */
function leadsAway(
  persons: readonly GitSetting[],
  host: readonly GitSetting[],
  wanted: readonly GitSetting[],
): GitSetting | undefined {
  const known = new Set(persons.map(keyOf));
  const remotes = new Set(persons.filter(isAddress).map(({ subsection }) => subsection));
  const branches = new Set(persons.filter(isOfBranch).map(({ subsection }) => subsection));
  const addressesOf = (settings: readonly GitSetting[], names: readonly string[]): readonly string[] =>
    settings.flatMap((one) => (isAddress(one) && names.includes(one.subsection ?? "") ? [one.value] : []));
  const stood = new Set(host.map(keyOf));
  /** `git remote rename` gives the branch another word for the same place. It renames the remote first, so the branch leads nowhere for a moment. */
  const isSamePlace = (one: GitSetting): boolean => {
    const { name, subsection, value } = one;
    if (name === "branch.merge") return false;
    const before = persons.filter((one) => isOfBranch(one) && one.subsection === subsection);
    const names = before.flatMap((one) => (one.name === "branch.merge" ? [] : [one.value]));
    const places = new Set(addressesOf(persons, names));
    const now = addressesOf(wanted, [value]);
    return now.length > 0 ? now.every((address) => places.has(address)) : stood.has(keyOf(one));
  };
  return wanted.find((one) => {
    if (known.has(keyOf(one))) return false;
    if (isAddress(one)) return remotes.has(one.subsection);
    return isOfBranch(one) && branches.has(one.subsection) && !isSamePlace(one);
  });
}

function hasAll(settings: readonly GitSetting[], routes: readonly GitSetting[]): boolean {
  const keys = new Set(settings.map(keyOf));
  return routes.every((one) => keys.has(keyOf(one)));
}

function keyOf({ name, subsection, value }: GitSetting): string {
  return JSON.stringify([name, subsection, value]);
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
