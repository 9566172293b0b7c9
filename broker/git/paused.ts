/**
 * State of a rebase, cherry-pick or `git am` that waits for `--continue`. A merge strategy is a program: git starts `git-merge-NAME` for
 * any name that is not its own, relative to the working tree where the name has a slash, and no `git status` shows it. Options reach
 * programs that write files: `git read-tree --index-output`, `git apply --build-fake-ancestor`. Lines `exec` of the list are left: git
 * writes them itself (`git rebase -x`), and `git status` shows them.
 */
import { readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { lookAt } from "../model/host-paths.ts";
import { readSmallFile } from "../model/small-file.ts";
import { gitSettings } from "./config.ts";

/** The folders in a git folder; git reads many files there, and of these what {@link JUDGED} lists. */
export const PAUSED_FOLDERS: ReadonlySet<string> = new Set(["rebase-merge", "rebase-apply", "sequencer"]);

/** What a file gives to programs; undefined for a file that cannot be read, or that git would refuse. */
type Given = { readonly strategies: readonly string[]; readonly options: readonly string[] } | undefined;

type Read = (name: string) => string | undefined;

const STRATEGY = "rebase-merge/strategy";
const STRATEGY_OPTIONS = "rebase-merge/strategy_opts";
const OPTIONS = "sequencer/opts";
const APPLY_OPTIONS = "rebase-apply/apply-opt";

/** By the file's name in the git folder: what `--continue` would do. */
const JUDGED: Readonly<Record<string, (read: Read) => boolean>> = {
  [STRATEGY]: (read) => isOfGit(ofRebase(read)),
  [STRATEGY_OPTIONS]: (read) => isOfGit(ofRebase(read)),
  [OPTIONS]: (read) => isOfGit(ofSequencer(read(OPTIONS))),
  [APPLY_OPTIONS]: (read) => isPlainApply(read(APPLY_OPTIONS)),
};

/** Strategies of git's own that take their options in C (builtin/merge.c, `all_strategy`), which refuses unknown ones. */
const IN_C: ReadonlySet<string> = new Set(["ort", "recursive", "ours", "subtree"]);
/** Shell scripts, which pass options on to `git read-tree`. */
const SCRIPTS: ReadonlySet<string> = new Set(["resolve", "octopus"]);

/** Options of `git am` for `git apply` (builtin/am.c, `cmd_am`). */
const OF_APPLY =
  /^(?:--(?:whitespace|directory|exclude|include)=.*|-C\d+|-p\d+|--(?:no-)?(?:reject|ignore-space-change|ignore-whitespace))$/s;

/** A ref or its log. */
export const REFERENCE = /^(?:ref: \S+|[0-9a-f]{40,64})\n$|^[0-9a-f]{40,64} [0-9a-f]{40,64} /;

const MAX_BYTES = 64 * 1024;

/** The paths in a git folder that are judged, folders last: they may be links. */
export function pausedIn(gitFolder: string): readonly string[] {
  return [...Object.keys(JUDGED), ...PAUSED_FOLDERS].map((name) => join(gitFolder, name));
}

/** Bound on the folders of worktrees and submodules. */
const MOST_FOLDERS = 1000;

/** In a submodule's git folder these are no git folders; a submodule itself may have such a name. */
const NOT_ENTERED: ReadonlySet<string> = new Set([
  "objects",
  "refs",
  "logs",
  "info",
  "lfs",
  "hooks",
  ...PAUSED_FOLDERS,
]);

/** Lists folders that may be the git folder of a worktree or a submodule of a repository. */
export function gitFoldersBelow(gitFolder: string): readonly string[] {
  const found = foldersIn(join(gitFolder, "worktrees"));
  for (const next = [join(gitFolder, "modules")]; next.length > 0 && found.length < MOST_FOLDERS; ) {
    const parent = next.shift() ?? "";
    const isEntered = (path: string): boolean =>
      basename(parent) === "modules" || !NOT_ENTERED.has(basename(path));
    const below = foldersIn(parent).filter(isEntered);
    found.push(...below);
    next.push(...below);
  }
  return found;
}

function foldersIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(folder, name));
  } catch {
    // Missing, or closed: git cannot enter either.
    return [];
  }
}

/** Whether a path may be a file of a paused rebase, cherry-pick or `git am` that is judged. */
export function isPausedState(place: string): boolean {
  return nameOf(place) in JUDGED;
}

/** Why git would run a program, or write elsewhere, because of a file that {@link isPausedState}. */
export function pausedWhy(place: string, uid: number): string | undefined {
  const gitFolder = dirname(dirname(place));
  const stat = lookAt(place);
  if (stat === undefined || stat.isDirectory()) return undefined;
  let known = true;
  const read = (name: string): string | undefined => {
    const file = join(gitFolder, name);
    const here = lookAt(file);
    if (here === undefined) return "";
    // A hard link could be written later under its other name.
    const text = here.nlink > 1 ? undefined : readSmallFile(file, MAX_BYTES, uid);
    known &&= text !== undefined;
    return text !== undefined && isReference(name, text) ? "" : text;
  };
  const isPlain = JUDGED[nameOf(place)]?.(read) === true;
  return isPlain && known
    ? undefined
    : "'git rebase', 'cherry-pick' or 'am --continue' may run a program that it names, or write where it says";
}

/** A branch may be named `sequencer/opts`: git refuses its ref and its log as options. A hash names no program of a command. */
function isReference(name: string, text: string): boolean {
  return /^[0-9a-f]{40,64}\n$/.test(text) || (name === OPTIONS && REFERENCE.test(text));
}

function nameOf(place: string): string {
  return join(basename(dirname(place)), basename(place));
}

/** Git removes one line feed at the end, and takes an empty file for none (sequencer.c, `read_oneliner`). */
function ofRebase(read: Read): Given {
  const [strategy, options] = [read(STRATEGY), read(STRATEGY_OPTIONS)];
  if (strategy === undefined || options === undefined) return undefined;
  const name = strategy.replace(/\r?\n$/, "");
  return { strategies: name === "" ? [] : [name], options: options.trim() === "" ? [] : [options] };
}

function ofSequencer(text: string | undefined): Given {
  const settings = text === undefined ? undefined : gitSettings(text);
  if (settings === undefined) return undefined;
  const of = (wanted: string): readonly string[] =>
    settings.filter(({ name }) => name.toLowerCase() === wanted).map(({ value }) => value);
  return { strategies: of("options.strategy"), options: of("options.strategy-option") };
}

function isOfGit(given: Given): boolean {
  if (given === undefined) return false;
  const { strategies, options } = given;
  return strategies.every((name) => IN_C.has(name) || (SCRIPTS.has(name) && options.length === 0));
}

/** The words stand in single quotes (quote.c, `sq_quote_argv`). */
function isPlainApply(text: string | undefined): boolean {
  if (text === undefined || !/^(?: ?'[^']*')*\n?$/.test(text)) return false;
  return [...text.matchAll(/'([^']*)'/g)].every(([, word = ""]) => OF_APPLY.test(word));
}
