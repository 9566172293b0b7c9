/**
 * State of a rebase or cherry-pick that waits for `--continue`. Its merge strategy is a program: git starts `git-merge-NAME` for any
 * name that is not its own, relative to the working tree where the name has a slash, and no `git status` shows it. Lines `exec` of the
 * list are left: git writes them itself (`git rebase -x`), and `git status` shows them.
 */
import { basename, dirname, join } from "node:path";
import { lookAt } from "../model/host-paths.ts";
import { readSmallFile } from "../model/small-file.ts";
import { gitSettings } from "./config.ts";

/** The folders in a git folder; in each git reads many files, and of these a strategy. */
export const PAUSED_FOLDERS: ReadonlySet<string> = new Set(["rebase-merge", "sequencer"]);

const STRATEGY = "rebase-merge/strategy";
const OPTIONS = "sequencer/opts";

/** Strategies that are git's own (builtin/merge.c, `all_strategy`). */
const OF_GIT: ReadonlySet<string> = new Set(["ort", "recursive", "resolve", "octopus", "ours", "subtree"]);

const MAX_BYTES = 64 * 1024;

/** The paths in a git folder that name a strategy. */
export function strategiesIn(gitFolder: string): readonly string[] {
  return [STRATEGY, OPTIONS].map((name) => join(gitFolder, name));
}

export function namesStrategy(place: string): boolean {
  return [STRATEGY, OPTIONS].includes(nameOf(place));
}

/** Why git would run a program because of a file that {@link namesStrategy}. */
export function pausedWhy(place: string, uid: number): string | undefined {
  const name = nameOf(place);
  const stat = lookAt(place);
  if (stat === undefined || stat.isDirectory()) return undefined;
  // A hard link could be written later under its other name.
  const text = stat.nlink > 1 ? undefined : readSmallFile(place, MAX_BYTES, uid);
  const strategies = text === undefined ? undefined : strategiesOf(name, text);
  if (strategies?.every((strategy) => OF_GIT.has(strategy)) === true) return undefined;
  return `'git ${name === STRATEGY ? "rebase" : "cherry-pick"} --continue' may run a merge strategy that it names, which is a program`;
}

function nameOf(place: string): string {
  return join(basename(dirname(place)), basename(place));
}

function strategiesOf(name: string, text: string): readonly string[] | undefined {
  // Git reads the first line, and an empty file as none.
  if (name === STRATEGY) return text === "" ? [] : [text.replace(/\n[^]*$/, "")];
  return gitSettings(text)
    ?.filter((setting) => setting.name.toLowerCase() === "options.strategy")
    .map(({ value }) => value);
}
