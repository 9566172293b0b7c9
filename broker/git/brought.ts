/**
 * Removes code that a command brought into a repository. A command may make a repository below its project, or a git
 * folder under another name, and redirect git there by a `.git` file or a submodule: then the person's `git status` in
 * the project's own folder runs programs named in the new settings. So code for git written by a command goes to
 * quarantine when the command ends; the rest of the repository stays.
 */
import { basename, dirname, join, relative } from "node:path";
import type { FsDiff } from "../../schemas/generated/types.ts";
import type { Settled, WorldViolation } from "../../world/backend.ts";
import { lookAt } from "../model/host-paths.ts";
import type { JudgedSettings } from "./settings.ts";
import { searchChanged } from "./brought-search.ts";
import { changedBelow, isOwnWorktree, ledOutside, type Outside } from "./opened.ts";
import { gitFoldersBelow, pausedIn } from "./paused.ts";
import { commonWhy, type GitJudge, namesIn, whyNot } from "./runs.ts";
import type { SettleTurns } from "./settle-turns.ts";

/** The judged project and world, and the handling of code found. */
export type BroughtBy = Outside &
  GitJudge & {
    readonly judgedSettings: Pick<JudgedSettings, "has">;
    /** Whether no command could write the path, so its content is a person's. */
    readonly isSealed: (path: string) => Promise<boolean>;
    /** Moves a path to quarantine; returns the new path. */
    readonly takeOut: (path: string) => string;
    readonly tell: (violation: WorldViolation) => void;
    readonly turns: SettleTurns;
  };

export type Brought = BroughtBy & {
  /** Start of the command, in milliseconds since 1970. */
  readonly since: number;
  /** Whether the project's own repository is a person's, and sealed. */
  readonly stoodAtFirst: boolean;
};

/**
 * Quarantines code for git and returns the remaining changes. `settled`: paths sealed after the command's end and
 * before this judgement, because other processes live on.
 */
export async function withoutBroughtCode(
  changes: FsDiff,
  brought: Brought,
  settled: Settled = { sealed: [], unsealed: [] },
): Promise<FsDiff> {
  const { project, turns } = brought;
  const changed = new Set(changes.mods);
  const unjudged = new Set(settled.sealed);
  const takeListed = (paths: readonly string[]): readonly string[] =>
    paths.filter((path) => takeIfCode(path, changed.has(path), brought));
  const [first, suspects] = await turns.look(() => [
    takeSettled(settled, brought),
    [
      ...new Set([...writtenIn(changes).flatMap(withPaused), ...ownPaused(brought, changes.truncated)]),
    ].filter((path) => whyNot(path, changed.has(path), brought) !== undefined),
  ]);
  const open = await turns.look(() => codeInUnsealed(brought));
  for (const path of suspects) {
    const place = join(project, path);
    if (unjudged.has(place) || !(await brought.isSealed(place))) open.push(path);
  }
  const taken = new Set([...first, ...(open.length === 0 ? [] : await turns.look(() => takeListed(open)))]);
  const links = new Set([...changes.writes, ...changes.mods, ...changes.autorun].filter(isLink));
  // Search for changes missing from the listing: a command may have ended its world or closed a folder.
  if (changes.truncated) {
    const sealed = brought.stoodAtFirst ? ".git" : undefined;
    await searchChanged({ project, since: brought.since, sealed, turns }, (path) => {
      if (isLink(path)) links.add(path);
      for (const each of withPaused(path)) if (takeIfCode(each, changed.has(each), brought)) taken.add(each);
    });
  }
  for (const path of await takeOutside([...links], brought)) taken.add(path);
  const { writes, mods } = changes;
  // Judged settings run only what the host's settings already ran.
  const autorun = changes.autorun.filter((path) => !brought.judgedSettings.has(join(brought.project, path)));
  if (taken.size === 0) return { ...changes, autorun };
  const rest = (paths: readonly string[]): string[] => paths.filter((path) => !taken.has(path));
  // The hash covered all changes.
  return {
    ...changes,
    writes: rest(writes),
    mods: rest(mods),
    autorun: rest(autorun),
    tree_hash: null,
  };
}

/** Looked at after each command, for a long listing does not name all: then also those of worktrees and submodules. */
function ownPaused({ project, gitFolder }: BroughtBy, all: boolean): readonly string[] {
  return [join(project, ".git"), ...(gitFolder === undefined ? [] : [gitFolder])]
    .flatMap((folder) => [folder, ...(all ? gitFoldersBelow(folder) : [])])
    .flatMap(pausedIn)
    .map((place) => relative(project, place));
}

/** What makes a folder a git folder makes git read its paused state, which may be older. */
function withPaused(path: string): readonly string[] {
  return MAKES.test(path) ? [...pausedIn(dirname(path)), path] : [path];
}

const MAKES = /(?:^|\/)(?:HEAD|objects|refs|worktrees|commondir)$/;

/**
 * Finds code in unsealed git folders of earlier commands: a later command may write there under a name outside every
 * listing.
 */
function codeInUnsealed(brought: BroughtBy): string[] {
  const { project, made } = brought;
  const names = (folder: string): readonly string[] => [
    join(folder, "config"),
    join(folder, "config.worktree"),
    ...namesIn(join(folder, "hooks")).map((name) => join(folder, "hooks", name)),
  ];
  return made
    .unsealedIn(project)
    .flatMap(names)
    .map((place) => relative(project, place))
    .filter((path) => whyNot(path, false, brought) !== undefined);
}

function isLink(path: string): boolean {
  return basename(path) === ".git";
}

/** Quarantines code in a git folder outside the project, and links that redirect git to an unjudged folder. */
async function takeOutside(links: readonly string[], brought: Brought): Promise<readonly string[]> {
  const { project, gitFolder, since, turns } = brought;
  const isOpen = async (place: string): Promise<boolean> => !(await brought.isSealed(place));
  const found =
    gitFolder === undefined
      ? []
      : await turns.look(() =>
          changedBelow(gitFolder, since, brought.isDenied).filter(
            (place) => whyNot(relative(project, place), false, brought) !== undefined,
          ),
        );
  const open: string[] = [];
  for (const place of found) if (await isOpen(place)) open.push(relative(project, place));
  const taken = await turns.look(() => open.filter((path) => takeIfCode(path, false, brought)));
  for (const link of links) {
    const folder = ledOutside(join(project, link), brought);
    if (folder === undefined || (await isJudged(folder, brought))) continue;
    if (await turns.look(() => take(link, LEADS_OUT, brought))) taken.push(link);
  }
  return taken;
}

const LEADS_OUT =
  "it leads git to a folder outside of the project whose settings and hooks commands may write (a person can run git submodule update or git worktree add on the host)";

/**
 * Whether commands cannot change the settings that git finds by this folder: a person's settings are sealed, and a new
 * worktree uses the repository's.
 */
async function isJudged(folder: string, brought: BroughtBy): Promise<boolean> {
  if (isOwnWorktree(folder, brought)) return leadsHome(folder, brought);
  const names = ["config", "commondir"].map((name) => join(folder, name));
  const stands = names.filter((path) => lookAt(path) !== undefined);
  for (const path of stands) if (!(await brought.isSealed(path))) return false;
  return stands.includes(join(folder, "config"));
}

function leadsHome(worktree: string, brought: BroughtBy): boolean {
  const common = join(worktree, "commondir");
  return lookAt(common) !== undefined && commonWhy(common, brought) === undefined;
}

/** Whether a kept process's link leads git out of the project, where later changes go unseen. */
export function leadsOut(link: string, brought: BroughtBy): boolean {
  const folder = ledOutside(link, brought);
  return folder !== undefined && !(isOwnWorktree(folder, brought) && leadsHome(folder, brought));
}

/**
 * Quarantines code among newly sealed paths, whatever the listing says, and each git folder that could not be sealed.
 * Returns paths relative to the project.
 */
export function takeSettled({ sealed, unsealed }: Settled, brought: BroughtBy): readonly string[] {
  const names = sealed.flatMap((path) =>
    basename(path) === "hooks" ? [path, ...namesIn(path).map((name) => join(path, name))] : [path],
  );
  const paths = names.map((path) => relative(brought.project, path));
  return [
    ...paths.filter((path) => takeIfCode(path, false, brought)),
    ...unsealed
      .map(({ folder, why }) => ({ path: relative(brought.project, folder), why }))
      .filter(({ path, why }) =>
        take(path, `processes still running could change what git runs there (${why})`, brought),
      )
      .map(({ path }) => path),
  ];
}

/**
 * Lists changed names that git reads in a git folder; `autorun` also has names cut from a long listing. Links to
 * settings come last: settings that run code are gone by then.
 */
function writtenIn({ writes, mods, autorun, deletes, dirs }: FsDiff): readonly string[] {
  const gone = new Set(deletes);
  const all = new Set([...writes, ...mods, ...autorun]);
  const paths = [...all].filter((path) => !gone.has(path));
  return [
    ...paths.filter((path) =>
      /(?:^|\/)(?:config|config\.worktree|(?:hooks|remotes|branches)(?:\/[^/]+)?|(?:rebase-merge|rebase-apply|sequencer)(?:\/(?:strategy|strategy_opts|opts|apply-opt))?|[^/]*\.git)$/.test(
        path,
      ),
    ),
    ...paths.filter((path) => /(?:^|\/)commondir$/.test(path)),
    ...paths.filter((path) => /(?:^|\/)HEAD$/.test(path)),
    // Behind a `commondir`, these folders, or links to folders, make a git folder without HEAD.
    ...[...dirs, ...paths].filter((path) => /(?:^|\/)(?:objects|refs|worktrees)$/.test(path)),
  ];
}

/** Returns whether the path was quarantined. */
function takeIfCode(path: string, stood: boolean, brought: BroughtBy): boolean {
  const place = join(brought.project, path);
  // Accepted settings: any code among them is a person's.
  if (brought.judgedSettings.has(place)) return false;
  const why = whyNot(path, stood, brought);
  return why !== undefined && take(path, why, brought);
}

/** Without its settings git still takes the folder for a repository, but one without remotes and names. */
function withAll(place: string): string {
  return /^config(?:\.worktree)?$/.test(basename(place)) ? ", with every other setting in it" : "";
}

/** Returns whether the path was quarantined. */
function take(path: string, why: string, { project, takeOut, tell }: BroughtBy): boolean {
  const place = join(project, path);
  const made = `'${place}' was made although ${why}`;
  try {
    tell({
      kind: "denied_name",
      subject: place,
      message: `${made}: it was moved to '${takeOut(place)}'${withAll(place)}`,
    });
    return true;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    tell({
      kind: "denied_name",
      subject: place,
      message: `${made}, and could not be moved out: ${reason}`,
    });
    return false;
  }
}
