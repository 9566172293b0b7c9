/**
 * What git's settings and the links of its own folder name inside a project: hooks, files of more settings, programs. Git's own
 * folder is sealed, but `core.hooksPath = tools/hooks`, or a link `.git/hooks/pre-commit -> ../../scripts/check.sh`, leads out of it,
 * to files that any command could write and the person's next commit runs. A hard link of a hook is such a file too.
 */
import { BoundedMap } from "../model/bounded-map.ts";
import { lstatSync, realpathSync, type Stats, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type GitSetting, gitSettings } from "./config.ts";
import { runsCode } from "./harmless-settings.ts";
import { fileId, HardLinks, linkedFile } from "./hard-links.ts";
import { isWithin } from "../project/projects.ts";
import { entriesIn, wayTo } from "../project/link-ways.ts";
import { quoted } from "../model/refusal.ts";
import { readSmallFile } from "../model/small-file.ts";

/** A person's own settings; git has no limit. */
const MAX_CONFIG = 1024 * 1024;

/** As git: deeper ones are an error there. */
const MAX_INCLUDES = 10;
const MAX_FILES = 64;
const MAX_KNOWN = 256;

/** Repositories below a project; three looks each. */
const MAX_NESTED = 16;

/** `PATH_MAX` of Linux, the words before it and the line's end. */
const MAX_POINTER = 4096 + 16;

/** Of a folder of hooks; git itself starts some thirty names. */
const MAX_HOOKS = 1000;

const INCLUDES = new Set(["include.path", "includeif.path"]);

type Known = {
  /** Git's own folders. */
  readonly folders: string;
  readonly identity: string;
  readonly files: readonly string[];
  readonly named: readonly string[];
  /** By path, what git does with it. */
  readonly reasons: ReadonlyMap<string, string>;
  /** Why a file that git runs or reads may have a name that is not among these. */
  readonly unsure: string | undefined;
};

export type GitPlaces = {
  /** Real path of the folder that holds `.git`. */
  readonly project: string;
  /** Its git folder. */
  readonly folder: string;
  /** Working trees of other repositories below the project, as far as somebody knows them. */
  readonly nested?: readonly string[];
  readonly home: string;
  /** Who a file must belong to, root apart. */
  readonly uid: number;
};

/** What was found, kept while every file it rests on stays as it was: each command asks. */
export class GitNamed {
  /** By project: worktrees of one repository share its git folder. */
  readonly #known = new BoundedMap<string, Known>(MAX_KNOWN);
  readonly #hardLinks: HardLinks;

  constructor(hardLinks = new HardLinks()) {
    this.#hardLinks = hardLinks;
  }

  /** Absolute paths in the project, sorted. */
  of(places: GitPlaces): readonly string[] {
    const { project } = places;
    const repositories = repositoriesOf(places);
    const known = this.#known.get(project);
    const folders = repositories.map(({ folder }) => folder).join("\0");
    if (known?.folders === folders && known.identity === identityOf(known.files)) return known.named;
    const [named, files] = [new Map<string, string>(), new Set<string>()];
    const found: Found = { named, files, read: new Set(), linked: new Map() };
    for (const path of settingsOfPerson(places.home)) {
      keep(path, "git takes settings from it", places, found);
      followLed(path, places, found);
    }
    for (const repository of repositories) lookInto(repository, found);
    const unsure = keepOtherNames(this.#hardLinks, places, found);
    const kept = [...named.keys()].sort();
    const all = [...files];
    this.#known.set(project, {
      folders,
      identity: identityOf(all),
      files: all,
      named: kept,
      reasons: named,
      unsure,
    });
    return kept;
  }

  /** Why commands could write by another name what git runs or reads, as it was when last asked; undefined where none could. */
  unsure(project: string): string | undefined {
    return this.#known.get(project)?.unsure;
  }

  /** What git does with a path that it names, or with the folder around it; undefined where it named none when last asked. */
  reason(project: string, path: string): string | undefined {
    const known = this.#known.get(project);
    const around = known?.named.findLast((each) => isWithin(path, each));
    return around === undefined ? undefined : known?.reasons.get(around);
  }
}

/** As `GitPlaces`, for one of the repositories: `tree` is where its relative paths begin. */
type Repository = Omit<GitPlaces, "nested"> & { readonly tree: string };

function repositoriesOf({ nested = [], ...own }: GitPlaces): readonly Repository[] {
  const { project, uid } = own;
  const below = nested.slice(0, MAX_NESTED).flatMap((tree) => {
    const folder = folderIn(tree, uid);
    return folder === undefined ? [] : [{ ...own, folder, tree }];
  });
  return [{ ...own, tree: project }, ...below];
}

/** What `.git` is, or where the file of that name leads. */
function folderIn(tree: string, uid: number): string | undefined {
  const path = join(tree, ".git");
  const stat = lstatOr(path);
  if (stat?.isFile() !== true) return stat === undefined ? undefined : path;
  const pointer = /^gitdir: ([^\r\n]+)/.exec(readSmallFile(path, MAX_POINTER, uid) ?? "")?.[1];
  return pointer === undefined ? undefined : resolve(tree, pointer);
}

function settingsOfPerson(home: string): readonly string[] {
  return ["/etc/gitconfig", join(home, ".config/git/config"), join(home, ".gitconfig")];
}

function lookInto(repository: Repository, found: Found): void {
  const { folder } = repository;
  for (const name of ["config", "config.worktree"]) followLed(join(folder, name), repository, found);
  const hooks = join(folder, "hooks");
  keepLed(hooks, `git runs the hooks in it, as ${quoted(hooks)} leads here`, repository, found);
  keepHooks(hooks, repository, found);
}

function followLed(path: string, places: Places, found: Found): void {
  keepLed(path, `git takes settings from it, as ${quoted(path)} leads here`, places, found);
  follow(path, places, found, 0);
}

type Places = GitPlaces & { readonly tree?: string };

type Found = {
  readonly named: Map<string, string>;
  /** All that an answer rests on. */
  readonly files: Set<string>;
  /** Settings files. */
  readonly read: Set<string>;
  /** Files with other names, by device and inode. */
  readonly linked: Map<string, { readonly stat: Stats; readonly paths: string[]; readonly why: string }>;
};

function follow(path: string, places: Places, found: Found, depth: number): void {
  if (depth > MAX_INCLUDES || found.read.has(path) || found.read.size >= MAX_FILES) return;
  found.read.add(path);
  found.files.add(path);
  // Many keep the settings of their home elsewhere, and a link to them.
  const real = realPath(path);
  found.files.add(real);
  keepLinked(path, `git takes settings from it, as it is ${quoted(path)} too`, places, found);
  const text = readSmallFile(real, MAX_CONFIG, places.uid) ?? readSmallFile(real, MAX_CONFIG, 0);
  const settings = text === undefined ? undefined : gitSettings(text);
  for (const setting of settings ?? []) {
    if (INCLUDES.has(setting.name)) {
      const included = absolute(setting.value, dirname(path), places.home);
      keepBoth(included, `git takes settings from it, as ${quoted(path)} says`, places, found);
      follow(included, places, found, depth + 1);
    } else keepNamed(setting, path, places, found);
  }
}

function keepNamed(setting: GitSetting, from: string, places: Places, found: Found): void {
  const { project, tree = project, home } = places;
  const { name, value } = setting;
  const says = `as '${name}' in ${quoted(from)} says`;
  if (name === "core.hookspath" && value !== "") {
    const hooks = absolute(value, tree, home);
    // What husky puts into `_` runs the files beside it.
    const folder = basename(hooks) === "_" ? dirname(hooks) : hooks;
    keepBoth(folder, `git runs the hooks in it, ${says}`, places, found);
    for (const each of new Set([folder, hooks])) keepHooks(each, places, found);
  }
  if (!runsCode(setting)) return;
  const program = absolute(/^!?\s*(?:\w+=\S*\s+)*["']?([^\s"';|&]+)/.exec(value)?.[1] ?? "", tree, home);
  if (!isFile(program)) return;
  keepBoth(program, `git runs it, ${says}`, places, found);
  found.files.add(program);
  keepLinked(program, `git runs it: it is ${quoted(program)} too, ${says}`, places, found);
}

/** A hook is mostly a link where people keep it with the project's other scripts. */
function keepHooks(folder: string, places: Places, found: Found): void {
  found.files.add(folder);
  const real = realPath(folder);
  found.files.add(real);
  for (const entry of entriesIn(real, MAX_HOOKS)) {
    const { name } = entry;
    if (entry.isDirectory() || name.endsWith(".sample")) continue;
    const [hook, path] = [join(folder, name), join(real, name)];
    found.files.add(path);
    const runs = `git runs it as the hook '${name}', as`;
    if (entry.isSymbolicLink()) keepLed(path, `${runs} ${quoted(hook)} leads here`, places, found);
    keepLinked(path, `${runs} it is ${quoted(hook)} too`, places, found);
  }
}

/** To look for the other names of the file that a path leads to. One of another user is not a command's to write. */
function keepLinked(path: string, why: string, { uid }: Places, { linked }: Found): void {
  const stat = linkedFile(path);
  if (stat === undefined || stat.uid !== uid) return;
  const [id, real] = [fileId(stat), realPath(path)];
  const known = linked.get(id);
  if (known === undefined) linked.set(id, { stat, paths: [real], why });
  else known.paths.push(real);
}

/** Returns why there may be more of them. */
function keepOtherNames(hardLinks: HardLinks, places: GitPlaces, found: Found): string | undefined {
  const files = new Map([...found.linked].map(([id, { stat }]) => [id, stat]));
  const { names, whole, closed } = hardLinks.in(places.project, files);
  for (const path of closed.keys()) found.files.add(path);
  let unsure: string | undefined;
  for (const [id, { stat, paths, why }] of found.linked) {
    const all = names.get(id) ?? [];
    for (const path of all) found.files.add(path);
    for (const path of all.filter((each) => !paths.includes(each))) keep(path, why, places, found);
    if (!whole && new Set([...all, ...paths]).size < stat.nlink) unsure ??= unsureWords(paths[0] ?? "");
  }
  return unsure;
}

function unsureWords(path: string): string {
  return `${quoted(path)} has another name (a hard link) that was not found in the project: a command that writes there changes what git runs. A person makes the file one of its own, outside of Substrate: cp -p FILE COPY && mv COPY FILE`;
}

/** Only in the project, and no working tree as a whole: what lies elsewhere is not written either, or the policy says that it is. */
function keep(path: string, why: string, { project, tree = project }: Places, { named }: Found): void {
  if (isWithin(path, project) && !isWithin(tree, path) && !named.has(path)) named.set(path, why);
}

function keepBoth(path: string, why: string, places: Places, found: Found): void {
  keep(path, why, places, found);
  keepLed(path, why, places, found);
}

/**
 * Links on the way to a path, and where it ends: whoever could replace one of them could put another file in its place. A path
 * in which no link stands is not kept by this. A world keeps with a link what it leads to: never a working tree as a whole.
 */
function keepLed(path: string, why: string, places: Places, found: Found): void {
  const { project, tree = project } = places;
  for (const place of wayTo(path)) {
    found.files.add(place);
    if (place !== path && !isWithin(tree, realPath(place))) keep(place, why, places, found);
  }
}

function absolute(value: string, from: string, home: string): string {
  return resolve(from, value.replace(/^~(?=\/|$)/, home));
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    // Missing or closed to us: then there is nothing to read.
    return path;
  }
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  } catch {
    // The broker cannot read this path, and git, run by the same user, cannot start a program there.
    return false;
  }
}

/** Times in milliseconds are told apart by a quarter of a microsecond, and cost half of what whole numbers of nanoseconds do. */
function identityOf(files: readonly string[]): string {
  let identity = "";
  for (const path of files) identity += `${lookOf(path)}\n`;
  return identity;
}

function lookOf(path: string): string {
  const stat = lstatOr(path);
  return stat === undefined
    ? "missing"
    : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}`;
}

function lstatOr(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // Closed to the broker, and to git that the same user runs.
    return undefined;
  }
}
