/**
 * Whose the remotes of a repository are. Commands may add remotes (`git remote add`), and that must neither open a host for them
 * (`@git`) nor lead a person's next push or pull elsewhere, also in several steps. Settings that say where a push or a fetch goes are
 * called routes. For each settings file the broker keeps the routes that commands wrote, and a person's that commands have removed: all
 * other routes in the file are a person's.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { lookExactlyAt } from "../model/host-paths.ts";
import { readSmallFile } from "../model/small-file.ts";
import type { OnFault } from "../spans/span-index.ts";
import type { GitSetting } from "./config.ts";

/** Records of a broker: one for each repository whose routes commands changed. */
const MOST_RECORDS = 10_000;

const MOST_BYTES = 1024 * 1024;

/** A repository of a thousand branches has 2,000. */
const MOST_ROUTES = 10_000;

/** A remote has one address, a few at most. */
const MOST_ADDRESSES = 20;

/** Where git pushes and fetches when nothing else is said (git-push(1)). */
const DEFAULT_REMOTE = "origin";

type Kept = {
  /** Routes that commands wrote. */
  readonly commands: readonly GitSetting[];
  /** A person's routes that commands have removed. */
  readonly removed: readonly GitSetting[];
  /** Commands could write the whole file, because no repository was there to seal: no remote in it counts as a person's. */
  readonly isFree?: boolean;
};

const NOTHING: Kept = { commands: [], removed: [] };

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

  /** Tells which addresses in this settings file (a real path) commands put there, or could have. */
  isCommands(path: string, settings: readonly GitSetting[]): (address: string) => boolean {
    const kept = this.#read(path);
    if (kept === "damaged" || kept?.isFree === true || this.#unkept.has(path)) return () => true;
    const { commands, removed } = kept ?? NOTHING;
    const theirs = new Set(addressesIn(commands));
    const persons = new Set(addressesIn(personsRoutes(settings, commands, removed)));
    // Records hold bytes as Latin-1, and readers of the file decode them in their own way.
    const isOdd = (address: string): boolean => theirs.size > 0 && !/^[\x20-\x7e]*$/.test(address);
    return (address) => isOdd(address) || (theirs.has(address) && !persons.has(address));
  }

  /** The files of a settings file's records, there or not. */
  recordsOf(path: string): readonly string[] {
    return [...new Set([this.#fileOf(path), this.#fileOf(keyOfFolder(path))])];
  }

  /** Notes that commands may write the file freely: a command begins where no repository stands, or a person applies one that a command made. */
  leaveToCommands(path: string): void {
    try {
      const file = this.#fileOf(path);
      const kept = this.#readFile(file);
      if (kept !== "damaged" && kept?.isFree !== true)
        this.#write(file, { ...(kept ?? NOTHING), isFree: true });
    } catch (error) {
      this.#unkept.add(path);
      this.#onFault("Cannot note that commands may have written a repository's remotes", error);
    }
  }

  /**
   * Returns the first setting of a command's new version that would lead a remote or branch of a person's elsewhere; undefined when
   * there is none. Then the routes that the command changes are noted, before the host's file gets them. Throws when they cannot be.
   */
  ledElsewhere(
    path: string,
    host: readonly GitSetting[],
    wanted: readonly GitSetting[],
  ): GitSetting | undefined {
    const kept = this.#read(path) ?? NOTHING;
    if (kept === "damaged") throw new Error("the broker's note about its remotes cannot be read");
    const [before, after] = [routesIn(host), routesIn(wanted)];
    const persons = personsRoutes(before, kept.commands, kept.removed);
    if (isSame(before, after)) return undefined;
    if (Math.max(persons.length, after.length) > MOST_ROUTES)
      throw new Error(`it has more than ${MOST_ROUTES} remotes and branches`);
    const led = leadsAway(persons, before, after);
    if (led !== undefined) return led;
    const [theirs, stood, comes] = [keysOf(persons), keysOf(before), keysOf(after)];
    // The exchange of the file may fail after this, so the note holds for both versions.
    const written = routesIn([...kept.commands.filter((one) => stood.has(keyOf(one))), ...after]);
    const stays = keysOf(before.filter((one) => comes.has(keyOf(one))));
    const now = {
      commands: written.filter((one) => !theirs.has(keyOf(one))),
      removed: persons.filter((one) => !stays.has(keyOf(one))),
      ...(kept.isFree === true ? { isFree: true } : {}),
    };
    for (const file of this.recordsOf(path)) this.#write(file, now);
    return undefined;
  }

  /** What is known of the folder, wherever it lies now, and of the path. */
  #read(path: string): Kept | "damaged" | undefined {
    const found = this.recordsOf(path).flatMap((file) => this.#readFile(file) ?? []);
    if (found.length === 0) return undefined;
    const whole = found.filter((one) => one !== "damaged");
    if (whole.length < found.length) return "damaged";
    return {
      commands: whole.flatMap((one) => one.commands),
      removed: whole.flatMap((one) => one.removed),
      isFree: whole.some((one) => one.isFree === true),
    };
  }

  #readFile(file: string): Kept | "damaged" | undefined {
    const text = readSmallFile(file, MOST_BYTES, this.#uid);
    if (text === undefined) return lookExactlyAt(file) === undefined ? undefined : "damaged";
    try {
      const kept = JSON.parse(text) as Kept | null;
      return Array.isArray(kept?.commands) && Array.isArray(kept.removed) ? kept : "damaged";
    } catch {
      return "damaged";
    }
  }

  #fileOf(key: string): string {
    return join(this.#folder, `${createHash("sha256").update(key).digest("hex")}.json`);
  }

  #write(file: string, kept: Kept): void {
    const text = JSON.stringify(kept);
    if (Buffer.byteLength(text) > MOST_BYTES)
      throw new Error("its remotes and branches are too many to keep a note of");
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    if (lookExactlyAt(file) === undefined && this.#names().length >= MOST_RECORDS)
      throw new Error(
        `commands have changed the remotes of ${MOST_RECORDS} repositories, which is the limit`,
      );
    const draft = `${file}.${process.pid}.tmp`;
    try {
      writeFileSync(draft, text, { mode: 0o600, flush: true });
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

/** By the folder a record is found after a move of the project, by the path after a restart that numbers the devices anew. */
function keyOfFolder(path: string): string {
  const stat = lookExactlyAt(dirname(path));
  return stat === undefined ? path : [stat.dev, stat.ino, stat.birthtimeNs].join(":");
}

/** Whether the setting says where a push or a fetch goes. */
export function isRoute(setting: GitSetting): boolean {
  const one = modern(setting);
  return isAddress(one) || isOfBranch(one);
}

/** Each route once, in the spelling `[remote "origin"]`. */
function routesIn(settings: readonly GitSetting[]): readonly GitSetting[] {
  return [
    ...new Map(
      settings
        .map(modern)
        .filter(isRoute)
        .map((one) => [keyOf(one), one]),
    ).values(),
  ];
}

/** `[remote.origin]`, an old spelling of a sub-section. */
function modern(setting: GitSetting): GitSetting {
  const [, section, subsection, key] = /^(remote|branch)\.(.+)\.([^.]+)$/.exec(setting.name) ?? [];
  if (setting.subsection !== undefined || subsection === undefined) return setting;
  return { name: `${section}.${key}`, subsection, value: setting.value };
}

function isAddress({ name }: GitSetting): boolean {
  return name === "remote.url" || name === "remote.pushurl";
}

function isOfBranch({ name }: GitSetting): boolean {
  return name === "branch.merge" || namesRemote({ name });
}

function namesRemote({ name }: Pick<GitSetting, "name">): boolean {
  return name === "branch.remote" || name === "branch.pushremote";
}

function personsRoutes(
  settings: readonly GitSetting[],
  commands: readonly GitSetting[],
  removed: readonly GitSetting[],
): readonly GitSetting[] {
  const theirs = keysOf(commands);
  return routesIn([...routesIn(settings).filter((one) => !theirs.has(keyOf(one))), ...removed]);
}

/**
 * Finds what would redirect a person: another address of a remote of theirs or of one that their branch follows, another remote or
 * upstream of their branch, a command's default remote where one of theirs has gone; and what redirects by its absence, an address or
 * remote for pushes alone.
 * A remote or branch that is wholly removed redirects nobody: a push fails.
 */
function leadsAway(
  persons: readonly GitSetting[],
  host: readonly GitSetting[],
  wanted: readonly GitSetting[],
): GitSetting | undefined {
  const [known, after] = [keysOf([...persons, ...host]), keysOf(wanted)];
  const branches = namesOf(persons.filter(isOfBranch));
  const followed = [...host, ...wanted].filter((one) => namesRemote(one) && branches.has(one.subsection));
  const guarded = new Set([...namesOf(persons.filter(isAddress)), ...followed.map(({ value }) => value)]);
  const isSamePlace = samePlaces(persons, wanted);
  const [urls, routes] = [
    namesOf(wanted.filter(({ name }) => name === "remote.url")),
    namesOf(wanted.filter(isOfBranch)),
  ];
  const [theirs, isLost] = [keysOf(persons), persons.some((one) => !after.has(keyOf(one)))];
  const led = wanted.find((one) => {
    // Without its own remote a branch is pushed to the default one.
    if (isLost && isAddress(one) && one.subsection === DEFAULT_REMOTE && !theirs.has(keyOf(one))) return true;
    if (known.has(keyOf(one))) return false;
    if (one.name === "remote.pushurl" && !urls.has(one.subsection)) return true;
    if (isAddress(one)) return guarded.has(one.subsection);
    return branches.has(one.subsection) && !isSamePlace(one);
  });
  return (
    led ??
    persons.find(({ name, subsection, value }) => {
      if (after.has(keyOf({ name, subsection, value }))) return false;
      if (name === "remote.pushurl") return urls.has(subsection);
      return name === "branch.pushremote" && routes.has(subsection);
    })
  );
}

/** Whether a branch follows the person's remote under another name, as `git remote rename` leaves it. */
function samePlaces(
  persons: readonly GitSetting[],
  wanted: readonly GitSetting[],
): (one: GitSetting) => boolean {
  const [theirs, now] = [addressesByRemote(persons), addressesByRemote(wanted)];
  const places = new Map<string | undefined, Set<string>>();
  for (const one of persons.filter(namesRemote)) {
    const known = places.get(one.subsection) ?? new Set();
    for (const address of theirs.get(one.value) ?? []) known.add(address);
    places.set(one.subsection, known);
  }
  return (one) => {
    if (!namesRemote(one)) return false;
    const addresses = now.get(one.value) ?? [];
    const known = places.get(one.subsection);
    if (addresses.length === 0 || addresses.length > MOST_ADDRESSES || known === undefined) return false;
    return addresses.every((address) => known.has(address));
  };
}

function addressesByRemote(
  routes: readonly GitSetting[],
): ReadonlyMap<string | undefined, readonly string[]> {
  const found = new Map<string | undefined, string[]>();
  for (const { subsection, value } of routes.filter(isAddress)) {
    const all = found.get(subsection);
    if (all === undefined) found.set(subsection, [value]);
    else all.push(value);
  }
  return found;
}

function addressesIn(routes: readonly GitSetting[]): readonly string[] {
  return routes.filter(isAddress).map(({ value }) => value);
}

function namesOf(routes: readonly GitSetting[]): ReadonlySet<string | undefined> {
  return new Set(routes.map(({ subsection }) => subsection));
}

function isSame(some: readonly GitSetting[], others: readonly GitSetting[]): boolean {
  const keys = keysOf(others);
  return some.length === others.length && some.every((one) => keys.has(keyOf(one)));
}

function keysOf(routes: readonly GitSetting[]): ReadonlySet<string> {
  return new Set(routes.map(keyOf));
}

function keyOf({ name, subsection, value }: GitSetting): string {
  return JSON.stringify([name, subsection, value]);
}
