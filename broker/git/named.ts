/**
 * Finds the files in a project that git's settings and the links of its own folder name: hooks, included settings,
 * programs. Git's own folder is sealed, but `core.hooksPath = tools/hooks`, or a link `.git/hooks/pre-commit ->
 * ../../scripts/check.sh`, leads to files that any command could write and the person's next commit runs. The same
 * holds for a hard link of a hook.
 */
import { BoundedMap } from "../model/bounded-map.ts";
import { realpathSync, type Stats, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { lookAt } from "../model/host-paths.ts";
import { type GitSetting, gitSettings } from "./config.ts";
import { runsCode } from "./harmless-settings.ts";
import { fileId, HardLinks, linkedFile } from "./hard-links.ts";
import { isWithin } from "../project/projects.ts";
import { entriesIn, wayTo } from "../project/link-ways.ts";
import { quoted } from "../model/refusal.ts";
import { readSmallFile } from "../model/small-file.ts";

/** Bound for a person's settings file; git has no limit. */
const MAX_CONFIG = 1024 * 1024;

/** As in git, where deeper includes are an error. */
const MAX_INCLUDES = 10;
const MAX_FILES = 64;
const MAX_KNOWN = 256;

/** Bound for repositories below a project; each takes three lstat calls. */
const MAX_NESTED = 16;

/** `PATH_MAX` of Linux, the prefix and the line end. */
const MAX_POINTER = 4096 + 16;

/** Bound per hooks folder; git itself starts some thirty names. */
const MAX_HOOKS = 1000;

const INCLUDES = new Set(["include.path", "includeif.path"]);

type Known = {
  /** The git folders. */
  readonly folders: string;
  readonly identity: string;
  readonly files: readonly string[];
  readonly named: readonly string[];
  /** Git's use of each named path. */
  readonly reasons: ReadonlyMap<string, string>;
  /** Why further names of a file that git runs or reads may be missing from `named`. */
  readonly unsure: string | undefined;
};

export type GitPlaces = {
  /** Real path of the folder with `.git`. */
  readonly project: string;
  /** The git folder. */
  readonly folder: string;
  /** Known working trees of other repositories below the project. */
  readonly nested?: readonly string[];
  readonly home: string;
  /** Required owner of a file, besides root. */
  readonly uid: number;
};

/** Finds named paths, with a cache checked against every file involved, since every command asks. */
export class GitNamed {
  /** By project: worktrees of a repository share its git folder. */
  readonly #known = new BoundedMap<string, Known>(MAX_KNOWN);
  readonly #hardLinks: HardLinks;

  constructor(hardLinks = new HardLinks()) {
    this.#hardLinks = hardLinks;
  }

  /** Returns absolute paths in the project, sorted. */
  of(places: GitPlaces): readonly string[] {
    const { project } = places;
    const repositories = repositoriesOf(places);
    const known = this.#known.get(project);
    const folders = repositories.map(({ folder }) => folder).join("\0");
    if (known?.folders === folders && known.identity === identityOf(known.files)) return known.named;
    const [named, files] = [new Map<string, string>(), new Set<string>()];
    const found: Found = { named, files, read: new Set(), linked: new Map() };
    for (const path of settingsOfPerson(places.home)) {
      keep(path, "git reads settings from it", places, found);
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

  /**
   * Why commands could write a file that git runs or reads by an unknown name, as of the last `of`; undefined when none
   * could.
   */
  unsure(project: string): string | undefined {
    return this.#known.get(project)?.unsure;
  }

  /**
   * Git's use of a named path, or of a named folder around `path`; undefined when nothing was named at the last `of`.
   */
  reason(project: string, path: string): string | undefined {
    const known = this.#known.get(project);
    const around = known?.named.findLast((each) => isWithin(path, each));
    return around === undefined ? undefined : known?.reasons.get(around);
  }
}

/** `GitPlaces` of a single repository; relative paths start at `tree`. */
type Repository = Omit<GitPlaces, "nested"> & { readonly tree: string };

function repositoriesOf({ nested = [], ...own }: GitPlaces): readonly Repository[] {
  const { project, uid } = own;
  const below = nested.slice(0, MAX_NESTED).flatMap((tree) => {
    const folder = folderIn(tree, uid);
    return folder === undefined ? [] : [{ ...own, folder, tree }];
  });
  return [{ ...own, tree: project }, ...below];
}

/** Returns `.git` itself, or the target of a `.git` file. */
function folderIn(tree: string, uid: number): string | undefined {
  const path = join(tree, ".git");
  const stat = lookAt(path);
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
  keepLed(path, `git reads settings from it, as ${quoted(path)} leads here`, places, found);
  follow(path, places, found, 0);
}

type Places = GitPlaces & { readonly tree?: string };

type Found = {
  readonly named: Map<string, string>;
  /** All files that the result depends on. */
  readonly files: Set<string>;
  /** Settings files already read. */
  readonly read: Set<string>;
  /** Files with several names, by device and inode. */
  readonly linked: Map<string, { readonly stat: Stats; readonly paths: string[]; readonly why: string }>;
};

function follow(path: string, places: Places, found: Found, depth: number): void {
  if (depth > MAX_INCLUDES || found.read.has(path) || found.read.size >= MAX_FILES) return;
  found.read.add(path);
  found.files.add(path);
  // Many people link the settings in their home folder to another place.
  const real = realPath(path);
  found.files.add(real);
  keepLinked(path, `git reads settings from it, as it is ${quoted(path)} too`, places, found);
  const text = readSmallFile(real, MAX_CONFIG, places.uid) ?? readSmallFile(real, MAX_CONFIG, 0);
  const settings = text === undefined ? undefined : gitSettings(text);
  for (const setting of settings ?? []) {
    if (INCLUDES.has(setting.name)) {
      const included = absolute(setting.value, dirname(path), places.home);
      keepBoth(included, `git reads settings from it, as ${quoted(path)} says`, places, found);
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
    // husky's scripts in `_` run the files in the parent folder.
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

/** Keeps the hooks of a folder. A hook is often a link to a script kept with the project's other scripts. */
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

/** Notes a hard-linked file for the search of its other names. Commands cannot write another user's file. */
function keepLinked(path: string, why: string, { uid }: Places, { linked }: Found): void {
  const stat = linkedFile(path);
  if (stat === undefined || stat.uid !== uid) return;
  const [id, real] = [fileId(stat), realPath(path)];
  const known = linked.get(id);
  if (known === undefined) linked.set(id, { stat, paths: [real], why });
  else known.paths.push(real);
}

/** Keeps the other names of hard-linked files. Returns why some may be missing. */
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
  return `${quoted(path)} has another name (a hard link) that was not found, so that name is not protected: writing there would change what git runs. A person can separate the file outside of Substrate: cp -p FILE COPY && mv COPY FILE`;
}

/**
 * Keeps a path inside the project, except a whole working tree. Paths elsewhere are read-only unless the policy opens
 * them.
 */
function keep(path: string, why: string, { project, tree = project }: Places, { named }: Found): void {
  if (isWithin(path, project) && !isWithin(tree, path) && !named.has(path)) named.set(path, why);
}

function keepBoth(path: string, why: string, places: Places, found: Found): void {
  keep(path, why, places, found);
  keepLed(path, why, places, found);
}

/**
 * Keeps the links on the way to a path and the final target: replacing a link would put another file in the target's
 * place. Keeps nothing for a path without links. A world protects a link together with its target, so a link to a whole
 * working tree is skipped.
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
    // Missing or unreadable: nothing to read.
    return path;
  }
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
  } catch {
    // The broker cannot read the path, and git, run by the same user, cannot start a program there.
    return false;
  }
}

/** Identifies files. `mtimeMs` resolves a quarter of a microsecond and costs half as much as BigInt nanoseconds. */
function identityOf(files: readonly string[]): string {
  let identity = "";
  for (const path of files) identity += `${lookOf(path)}\n`;
  return identity;
}

function lookOf(path: string): string {
  const stat = lookAt(path);
  return stat === undefined
    ? "missing"
    : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}`;
}
