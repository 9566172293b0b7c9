/**
 * Git folders in worlds where processes outlive the command (`background: keep`, or concurrent commands). The command's
 * own git folders are sealed and judged before the reply; git folders that such a process makes later are judged soon
 * after.
 */
import { lstatSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import type { FsDiff } from "../../schemas/generated/types.ts";
import type { World } from "../../world/backend.ts";
import { type Brought, type BroughtBy, leadsOut, takeSettled, withoutBroughtCode } from "./brought.ts";
import { mayExist } from "./foreign.ts";
import { leadsAstray } from "./links.ts";

/** Time for a running `git init` or `git clone` to write its own settings and sample hooks. */
const SOON_MS = 150;

/** Bound per repository: each submodule has a folder. A larger repository is quarantined whole. */
const MOST_FOLDERS = 1000;

/** Folders holding most files of every git folder; git runs no file there. */
const NOT_ENTERED: ReadonlySet<string> = new Set(["objects", "refs", "logs", "info", "lfs", "hooks"]);

const RUN_OR_READ: ReadonlySet<string> = new Set(["config", "config.worktree", "commondir", "hooks"]);

/** Returns a command's changes without code for git, with no way for surviving processes to add code later. */
export async function withoutBroughtCodeBesideOthers(
  world: World,
  changes: FsDiff,
  brought: Brought,
): Promise<FsDiff> {
  const folders = gitFoldersOf(changes, brought.project);
  // Needed without surviving processes too: a later command could hard-link the settings and write them by the second
  // name.
  const settled = await brought.turns.settle(() => world.settle(folders, changes.truncated));
  return await withoutBroughtCode(changes, brought, settled);
}

/** Makes the callback for a kept process's new git folder; the broker judges the folder. */
export function whenBrought(world: World, brought: BroughtBy): (folder: string) => void {
  const waiting = new Set<string>();
  return (folder) => {
    waiting.add(folder);
    if (waiting.size > 1) return;
    setTimeout(() => {
      const folders = [...waiting];
      waiting.clear();
      void settleAndJudge(world, folders, brought);
    }, SOON_MS);
  };
}

/** Makes the callback for a sealed name in a git folder of another maker; the broker quarantines its code. */
export function whenSealed(brought: BroughtBy): (path: string) => void {
  return (path) => void brought.turns.look(() => takeSettled({ sealed: [path], unsealed: [] }, brought));
}

async function settleAndJudge(world: World, folders: readonly string[], brought: BroughtBy): Promise<void> {
  const { unsealed } = await brought.turns.settle(() => world.settle(folders, false));
  await brought.turns.look(() => {
    // The state now: an ended process or world needs no seal.
    const found = folders.map((path) => ({
      folder: path,
      names: isFolder(path) ? namesThatRun(path) : [],
    }));
    const closed = found.filter(({ names }) => names === undefined).map(({ folder: path }) => path);
    const led = folders.filter(
      (path) => !isFolder(path) && (leadsAstray(path, brought) || leadsOut(path, brought)),
    );
    takeSettled(
      {
        sealed: found.flatMap(({ names }) => names ?? []),
        unsealed: [
          ...unsealed,
          ...closed.map((path) => ({ folder: path, why: "it cannot be looked through" })),
          ...led.map((path) => ({ folder: path, why: "it leads there" })),
        ],
      },
      brought,
    );
  });
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return true;
  }
}

/** Lists the paths in a git folder that git runs or reads as settings; undefined when unknown. */
function namesThatRun(gitFolder: string): readonly string[] | undefined {
  const names: string[] = [];
  const folders = [gitFolder];
  try {
    for (let at = 0; at < folders.length; at += 1) {
      const folder = folders[at] ?? gitFolder;
      if (at === MOST_FOLDERS) return undefined;
      for (const entry of readdirSync(folder, { withFileTypes: true })) {
        if (RUN_OR_READ.has(entry.name)) names.push(join(folder, entry.name));
        if (entry.isDirectory() && !NOT_ENTERED.has(entry.name)) folders.push(join(folder, entry.name));
      }
    }
    // Settings that run code are gone by then.
    const [last, first] = [names.filter(isCommon), names.filter((path) => !isCommon(path))];
    return [...first, ...last];
  } catch {
    return mayExist(gitFolder) ? undefined : [];
  }
}

/** Lists git folders where the command wrote code or settings, including those of worktrees and submodules. */
function gitFoldersOf({ writes, mods, autorun, dirs }: FsDiff, project: string): readonly string[] {
  const folders = [...writes, ...mods, ...autorun, ...dirs].flatMap((path) => {
    const outer = /^(?:.*?\/)?[^/]*\.git(?=\/|$)/s.exec(path)?.[0];
    if (outer === undefined) return [];
    const inner = /^(.*)\/(?:config|config\.worktree|commondir|hooks(?:\/.*)?)$/s.exec(path)?.[1];
    return inner === undefined ? [outer] : [outer, inner];
  });
  return [...new Set(folders)].map((path) => join(project, path));
}

function isCommon(path: string): boolean {
  return basename(path) === "commondir";
}
