/**
 * A command may make a repository below its project, or a git folder under another name, and lead git there by a `.git` file or a
 * submodule: then the person's `git status` in the project's own folder runs what its settings name. So what a command wrote
 * there that runs code is taken out again when the command ends; a repository without that stays.
 */
import { basename, join, relative } from "node:path";
import type { FsDiff } from "../../schemas/generated/types.ts";
import type { Settled, WorldViolation } from "../../world/backend.ts";
import type { JudgedSettings } from "./settings.ts";
import { searchChanged } from "./brought-search.ts";
import { changedBelow, isOwnWorktree, ledOutside, type Outside } from "./opened.ts";
import { commonWhy, type GitJudge, lookAt, namesIn, whyNot } from "./runs.ts";
import type { SettleTurns } from "./settle-turns.ts";

/** Whose changes are judged, and what becomes of code among them. */
export type BroughtBy = Outside &
  GitJudge & {
    readonly judgedSettings: Pick<JudgedSettings, "has">;
    /** Whether no command could write what stands there: it is as a person left it. */
    readonly isSealed: (path: string) => Promise<boolean>;
    /** Moves a path to quarantine; returns where it lies now. */
    readonly takeOut: (path: string) => string;
    readonly tell: (violation: WorldViolation) => void;
    readonly turns: SettleTurns;
  };

export type Brought = BroughtBy & {
  /** When the command began, in milliseconds since 1970. */
  readonly since: number;
  /** Whether the project's own repository is a person's, and sealed. */
  readonly stoodAtFirst: boolean;
};

/**
 * The changes without what was taken out again. `settled`: what was sealed after the command and before this look, because
 * processes live on.
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
    writtenIn(changes).filter((path) => whyNot(path, changed.has(path), brought) !== undefined),
  ]);
  const open = await turns.look(() => codeInUnsealed(brought));
  for (const path of suspects) {
    const place = join(project, path);
    if (unjudged.has(place) || !(await brought.isSealed(place))) open.push(path);
  }
  const taken = new Set([...first, ...(open.length === 0 ? [] : await turns.look(() => takeListed(open)))]);
  const links = new Set([...changes.writes, ...changes.mods, ...changes.autorun].filter(isLink));
  // What the listing lacks is looked for: a command may have ended its world, or closed a folder.
  if (changes.truncated) {
    const sealed = brought.stoodAtFirst ? ".git" : undefined;
    await searchChanged({ project, since: brought.since, sealed, turns }, (path) => {
      if (isLink(path)) links.add(path);
      if (takeIfCode(path, changed.has(path), brought)) taken.add(path);
    });
  }
  for (const path of await takeOutside([...links], brought)) taken.add(path);
  const { writes, mods } = changes;
  // Settings that were judged run nothing that the host did not have.
  const autorun = changes.autorun.filter((path) => !brought.judgedSettings.has(join(brought.project, path)));
  if (taken.size === 0) return { ...changes, autorun };
  const rest = (paths: readonly string[]): string[] => paths.filter((path) => !taken.has(path));
  // The hash was over all of them.
  return {
    ...changes,
    writes: rest(writes),
    mods: rest(mods),
    autorun: rest(autorun),
    tree_hash: null,
  };
}

/** In git folders that earlier commands made: a later one may write there by a name that no listing has, and nobody seals them. */
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

/** Takes out what runs code in a git folder outside of the project, and what would lead git to a folder that nobody judges. */
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
  "it leads git to a folder outside of the project, whose settings and hooks commands may write there (a person runs git submodule update or git worktree add on the host)";

/** Whether no command can lead git to its own settings there: a person's are sealed, and a new worktree reads the repository's. */
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

/** Whether the link of a kept process leads git out of the project, where nobody sees what the process changes later. */
export function leadsOut(link: string, brought: BroughtBy): boolean {
  const folder = ledOutside(link, brought);
  return folder !== undefined && !(isOwnWorktree(folder, brought) && leadsHome(folder, brought));
}

/**
 * Takes out what runs code of what was sealed, whatever a listing says of it, and each git folder that could not be sealed. Returns
 * paths from the project.
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
        take(path, `processes that live on could change what git runs there (${why})`, brought),
      )
      .map(({ path }) => path),
  ];
}

/**
 * Names that git reads in a git folder; `autorun` has those too that a long listing leaves out. What leads git to settings comes
 * last: by then settings that run code are gone.
 */
function writtenIn({ writes, mods, autorun, deletes, dirs }: FsDiff): readonly string[] {
  const gone = new Set(deletes);
  const all = new Set([...writes, ...mods, ...autorun]);
  const paths = [...all].filter((path) => !gone.has(path));
  return [
    ...paths.filter((path) =>
      /(?:^|\/)(?:config|config\.worktree|(?:hooks|remotes|branches)(?:\/[^/]+)?|[^/]*\.git)$/.test(path),
    ),
    ...paths.filter((path) => /(?:^|\/)commondir$/.test(path)),
    ...paths.filter((path) => /(?:^|\/)HEAD$/.test(path)),
    // Where a `commondir` leads they make a git folder without a HEAD.
    ...dirs.filter((path) => /(?:^|\/)(?:objects|refs)$/.test(path)),
  ];
}

/** True when it was taken out. */
function takeIfCode(path: string, stood: boolean, brought: BroughtBy): boolean {
  const place = join(brought.project, path);
  // What of it runs code is the person's.
  if (brought.judgedSettings.has(place)) return false;
  const why = whyNot(path, stood, brought);
  return why !== undefined && take(path, why, brought);
}

/** True when it was taken out. */
function take(path: string, why: string, { project, takeOut, tell }: BroughtBy): boolean {
  const place = join(project, path);
  const made = `'${place}' was made although ${why}`;
  try {
    tell({
      kind: "denied_name",
      subject: place,
      message: `${made}: it was taken out, and lies in '${takeOut(place)}'`,
    });
    return true;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    tell({
      kind: "denied_name",
      subject: place,
      message: `${made}, and could not be taken out: ${reason}`,
    });
    return false;
  }
}
