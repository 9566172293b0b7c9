/**
 * Git folders beside processes that outlive their commands (`background: keep`, or other commands of the same world). What a command
 * made is sealed before its reply, and judged as it is then; what such a process makes after the reply, soon after.
 */
import { lstatSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import type { FsDiff } from "../../schemas/generated/types.ts";
import type { World } from "../../world/backend.ts";
import { type Brought, type BroughtBy, leadsOut, takeSettled, withoutBroughtCode } from "./brought.ts";
import { leadsAstray } from "./links.ts";

/** So that a `git init` or `git clone` that has begun comes as far as its own settings and samples of hooks. */
const SOON_MS = 150;

/** Of one repository: each submodule has one. What has more is taken out whole. */
const MOST_FOLDERS = 1000;

/** In every git folder, with most of its files; git runs nothing that stands there. */
const NOT_ENTERED: ReadonlySet<string> = new Set(["objects", "refs", "logs", "info", "lfs", "hooks"]);

const RUN_OR_READ: ReadonlySet<string> = new Set(["config", "config.worktree", "commondir", "hooks"]);

/** The changes of a command without code for git, which nobody that lives on in the world can bring later. */
export async function withoutBroughtCodeBesideOthers(
  world: World,
  changes: FsDiff,
  brought: Brought,
): Promise<FsDiff> {
  const folders = gitFoldersOf(changes, brought.project);
  // Also where nobody lives on: a later command would give the settings a second name and write them by that.
  const settled = await brought.turns.settle(() => world.settle(folders, changes.truncated));
  return await withoutBroughtCode(changes, brought, settled);
}

/** The callback for a git folder that a kept process made: the broker judges the folder. */
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

/** The callback for a sealed name in a git folder that somebody else makes: the broker takes out what of it runs code. */
export function whenSealed(brought: BroughtBy): (path: string) => void {
  return (path) => void brought.turns.look(() => takeSettled({ sealed: [path], unsealed: [] }, brought));
}

async function settleAndJudge(world: World, folders: readonly string[], brought: BroughtBy): Promise<void> {
  const { unsealed } = await brought.turns.settle(() => world.settle(folders, false));
  await brought.turns.look(() => {
    // As it is now: a process that has ended needs no seal against it, and neither does a world.
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

/** What of a git folder git runs, or reads as settings; undefined when that cannot be told. */
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
    // By then settings that run code are gone.
    const [last, first] = [names.filter(isCommon), names.filter((path) => !isCommon(path))];
    return [...first, ...last];
  } catch {
    return isThere(gitFolder) ? undefined : [];
  }
}

function isThere(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}

/** Git folders in which the command wrote what git runs or reads as settings, and those of worktrees and submodules in them. */
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
