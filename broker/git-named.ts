/**
 * What git's settings name inside a project: a folder of hooks, files of more settings, programs. Git's own folder is sealed, but
 * `core.hooksPath = tools/hooks` leads out of it, to files that any command could write and the person's next commit runs.
 */
import { lstatSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { type GitSetting, gitSettings } from "./git-config.ts";
import { isCommand } from "./git-commands.ts";
import { isWithin } from "./projects.ts";
import { readSmallFile } from "./small-file.ts";

/** A person's own settings; git has no limit. */
const MAX_CONFIG = 1024 * 1024;

/** As git: deeper ones are an error there. */
const MAX_INCLUDES = 10;
const MAX_FILES = 64;
const MAX_KNOWN = 256;

const INCLUDES = new Set(["include.path", "includeif.path"]);

type Known = {
  readonly identity: string;
  readonly files: readonly string[];
  readonly named: readonly string[];
};

export type GitPlaces = {
  /** Real path of the folder that holds `.git`. */
  readonly project: string;
  /** Its git folder. */
  readonly folder: string;
  readonly home: string;
  /** Who a file must belong to, root apart. */
  readonly uid: number;
};

/** What was found, kept while every file it rests on stays as it was: each command asks. */
export class GitNamed {
  readonly #known = new Map<string, Known>();

  /** Absolute paths in the project, sorted. */
  of(places: GitPlaces): readonly string[] {
    const known = this.#known.get(places.folder);
    if (known !== undefined && known.identity === identityOf(known.files)) return known.named;
    const [named, files] = [new Set<string>(), new Set<string>()];
    const { folder, home } = places;
    for (const path of [
      "/etc/gitconfig",
      join(home, ".config/git/config"),
      join(home, ".gitconfig"),
      join(folder, "config"),
      join(folder, "config.worktree"),
    ])
      follow(path, places, { named, files }, 0);
    const found = { identity: identityOf([...files]), files: [...files], named: [...named].sort() };
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    this.#known.set(folder, found);
    return found.named;
  }
}

type Found = { readonly named: Set<string>; readonly files: Set<string> };

function follow(path: string, places: GitPlaces, found: Found, depth: number): void {
  if (depth > MAX_INCLUDES || found.files.has(path) || found.files.size >= MAX_FILES) return;
  found.files.add(path);
  // Many keep the settings of their home elsewhere, and a link to them.
  const real = realPath(path);
  found.files.add(real);
  const text = readSmallFile(real, MAX_CONFIG, places.uid) ?? readSmallFile(real, MAX_CONFIG, 0);
  const settings = text === undefined ? undefined : gitSettings(text);
  for (const setting of settings ?? []) {
    if (INCLUDES.has(setting.name)) {
      const included = absolute(setting.value, dirname(path), places.home);
      keep(included, places, found);
      follow(included, places, found, depth + 1);
    } else keepNamed(setting, places, found);
  }
}

function keepNamed(setting: GitSetting, places: GitPlaces, found: Found): void {
  const { project, home } = places;
  const { name, value } = setting;
  if (name === "core.hookspath" && value !== "") {
    const hooks = absolute(value, project, home);
    // What husky puts into `_` runs the files beside it.
    keep(basename(hooks) === "_" ? dirname(hooks) : hooks, places, found);
  }
  if (!isCommand(setting)) return;
  const program = absolute(/^!?\s*(?:\w+=\S*\s+)*["']?([^\s"';|&]+)/.exec(value)?.[1] ?? "", project, home);
  if (isFile(program)) keep(program, places, found);
}

/** Only in the project: what lies elsewhere is not written either, or the policy says that it is. */
function keep(path: string, { project }: GitPlaces, { named }: Found): void {
  if (path !== project && isWithin(path, project)) named.add(path);
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
  try {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    return stat === undefined
      ? "missing"
      : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeMs}:${stat.ctimeMs}`;
  } catch {
    return "closed";
  }
}
