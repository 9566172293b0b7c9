/**
 * A command may make a repository below its project, or a git folder under another name, and lead git there by a `.git` file or a
 * submodule: then the person's `git status` in the project's own folder runs what its settings name. So what a command wrote
 * there that runs code is taken out again when the command ends; a repository without that stays.
 */
import { existsSync, lstatSync, readdirSync, realpathSync, type Stats } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import type { FsDiff } from "../schemas/generated/types.ts";
import type { Settled, WorldViolation } from "../world/backend.ts";
import { literalPattern } from "./file-scope.ts";
import { runsCode } from "./git-commands.ts";
import { gitSettings } from "./git-config.ts";
import { isPlainAddress } from "./git-safe-settings.ts";
import { leadsAstray } from "./git-links.ts";
import type { JudgedSettings } from "./git-settings.ts";
import { searchChanged } from "./git-brought-search.ts";
import type { MadeRepositories } from "./made-repositories.ts";
import { changedBelow, isOwnWorktree, ledOutside, type Outside } from "./git-opened.ts";
import type { SettleTurns } from "./settle-turns.ts";
import { readSmallFile } from "./small-file.ts";

/** Git's own are some hundred bytes; what is longer is not read and counts as one that runs code. */
const MAX_CONFIG = 1024 * 1024;

const NOBODY_KNOWS = "nobody can say which programs git would run by it";

/** Whose changes are judged, and what becomes of code among them. */
export type BroughtBy = Outside & {
  readonly judgedSettings: Pick<JudgedSettings, "has">;
  /** Whether no command could write what stands there: it is as a person left it. */
  readonly isSealed: (path: string) => Promise<boolean>;
  /** Moves a path to quarantine; returns where it lies now. */
  readonly takeOut: (path: string) => string;
  readonly tell: (violation: WorldViolation) => void;
  readonly turns: SettleTurns;
  readonly made: Pick<MadeRepositories, "isMade" | "unsealedIn">;
  /** Patterns of the world: a project's git folder of another name has some of its own. */
  readonly sealed: readonly string[];
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

/** Whether a kept process may lead git there: what it changes after this look nobody sees. */
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

function whyNot(path: string, stood: boolean, brought: GitJudge): string | undefined {
  const { project, uid } = brought;
  const place = join(project, path);
  const folder = dirname(place);
  if (basename(place).endsWith(".git")) return linkWhy(place, brought);
  if (basename(folder) === "hooks") return hookWhy(place);
  if (ADDRESS_FOLDERS.has(basename(folder)) && isGitFolder(dirname(folder))) return addressWhy(place, uid);
  if (basename(place) === "hooks" || ADDRESS_FOLDERS.has(basename(place)))
    return isGitFolder(folder) ? folderLinkWhy(place) : undefined;
  // A file that was there before and is only called so is the person's.
  if (stood && !isGitFolder(folder)) return undefined;
  switch (basename(place)) {
    case "HEAD":
      return stood ? undefined : headWhy(folder, brought);
    case "objects":
    case "refs":
      return stood || !isGitFolder(folder) ? undefined : headWhy(folder, brought);
    case "commondir":
      return isGitFolder(folder) ? commonWhy(place, brought) : undefined;
    default:
      return settingsWhy(place, uid, isGitFolder(folder));
  }
}

type LinkJudge = Pick<BroughtBy, "project" | "uid" | "made" | "sealed">;

/** `gitFolder`: its settings and hooks are denied, wherever it lies. */
type GitJudge = LinkJudge & Pick<BroughtBy, "gitFolder">;

/** Whether nobody changes unseen what git runs there. */
function isLookedAt(folder: string, { made, sealed }: LinkJudge): boolean {
  return made.isMade(folder) || isSealedAs(folder, sealed);
}

function isSealedAs(gitFolder: string, sealed: readonly string[]): boolean {
  return sealed.includes(literalPattern(join(gitFolder, "config")));
}

/** A plain file of another name is nothing to git. */
function linkWhy(place: string, brought: LinkJudge): string | undefined {
  const isFollowed = basename(place) === ".git" || lookAt(place)?.isSymbolicLink() === true;
  return isFollowed && leadsAstray(place, brought, (folder) => isLookedAt(folder, brought))
    ? "it leads git to a folder where any command could change what git runs"
    : undefined;
}

/** A HEAD makes a git folder of one whose settings were not looked at as such, when they were written. */
function headWhy(folder: string, brought: GitJudge): string | undefined {
  const { uid } = brought;
  return (
    settingsWhy(join(folder, "config"), uid, true) ??
    settingsWhy(join(folder, "config.worktree"), uid, true) ??
    hooksWhy(join(folder, "hooks")) ??
    addressesWhy(folder, uid) ??
    commonWhy(join(folder, "commondir"), brought)
  );
}

/** Why a git folder may not have its hooks: a command wrote them before it wrote the HEAD that makes git read them. */
function hooksWhy(hooks: string): string | undefined {
  return (
    folderLinkWhy(hooks) ?? (namesIn(hooks).some((name) => !name.endsWith(".sample")) ? HOOKS : undefined)
  );
}

function folderLinkWhy(folder: string): string | undefined {
  return lookAt(folder)?.isSymbolicLink() === true
    ? `it leads git to ${basename(folder)} in another folder`
    : undefined;
}

/** Old places of a remote's address (gitrepository-layout(5)): git looks there for one that has no `remote.NAME.url`. */
const ADDRESS_FOLDERS: ReadonlySet<string> = new Set(["remotes", "branches"]);

function addressesWhy(gitFolder: string, uid: number): string | undefined {
  for (const folder of [...ADDRESS_FOLDERS].map((name) => join(gitFolder, name))) {
    const why =
      folderLinkWhy(folder) ??
      namesIn(folder)
        .map((name) => addressWhy(join(folder, name), uid))
        .find((found) => found !== undefined);
    if (why !== undefined) return why;
  }
  return undefined;
}

function addressWhy(place: string, uid: number): string | undefined {
  const stat = lookAt(place);
  if (stat === undefined || stat.isDirectory()) return undefined;
  const text = stat.nlink > 1 ? undefined : readSmallFile(place, MAX_CONFIG, uid);
  if (text === undefined) return NOBODY_KNOWS;
  const addresses = text.split("\n").map((line) => line.replace(/^(?:URL|Push|Pull):/, "").trim());
  return addresses.every(isPlainAddress) ? undefined : "an address in it may name a program for git to run";
}

const HOOKS = "git runs it by itself, and a repository that a command makes has no hooks";

function namesIn(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    // None, or closed to us: git does not come there either.
    return [];
  }
}

/** Git's own (`git worktree add`) leads two folders up. Any other may lead to settings that nobody looks at, or will later. */
function commonWhy(place: string, brought: GitJudge): string | undefined {
  const { uid, gitFolder, sealed } = brought;
  const stat = lookAt(place);
  if (stat === undefined || stat.isDirectory()) return undefined;
  const worktrees = dirname(dirname(place));
  const common = dirname(worktrees);
  const isOwn =
    // By another name it is written later.
    stat.nlink === 1 &&
    readSmallFile(place, 4096, uid)?.trim() === "../.." &&
    basename(worktrees) === "worktrees" &&
    realOf(dirname(place)) === dirname(place);
  if (!isOwn) return "it leads git to the settings and hooks of another folder";
  if (common.endsWith(".git") || common === gitFolder || isSealedAs(common, sealed)) return undefined;
  if (!existsSync(join(common, "HEAD"))) return NOBODY_KNOWS;
  return (
    settingsWhy(join(common, "config"), uid, true) ??
    hooksWhy(join(common, "hooks")) ??
    addressesWhy(common, uid)
  );
}

function hookWhy(place: string): string | undefined {
  const stat = lookAt(place);
  // Also one that may not be run: a later command, or a kept process, has only to change its mode.
  const runs = stat?.isSymbolicLink() === true || stat?.isFile() === true;
  if (!runs || place.endsWith(".sample") || !isGitFolder(dirname(dirname(place)))) return undefined;
  return HOOKS;
}

function settingsWhy(place: string, uid: number, inGitFolder: boolean): string | undefined {
  const stat = lookAt(place);
  if (stat === undefined || stat.isDirectory()) return undefined;
  // By another name it is written later, and the listing has that name only.
  const text = inGitFolder && stat.nlink > 1 ? undefined : readSmallFile(place, MAX_CONFIG, uid);
  const settings = text === undefined ? undefined : gitSettings(text);
  if (settings === undefined) return inGitFolder ? NOBODY_KNOWS : undefined;
  const found = settings.find(runsCode);
  if (found !== undefined) return `git would run what its '${found.name}' names`;
  // Git sets it for a submodule alone. Elsewhere the person's next `git reset` writes the command's files into that folder.
  const leads =
    inGitFolder && !OF_SUBMODULE.test(place) && settings.some(({ name }) => name === "core.worktree");
  return leads ? "git would work on the files of another folder, which its 'core.worktree' names" : undefined;
}

const OF_SUBMODULE = /\.git\/(?:[^/]+\/)*modules\//;

/**
 * Git itself wants HEAD, objects and refs, and no HEAD where a `commondir` leads to. A command may bring the others later; then
 * HEAD, or the `commondir` below `worktrees`, is looked at.
 */
function isGitFolder(folder: string): boolean {
  const has = (name: string): boolean => lookAt(join(folder, name)) !== undefined;
  return folder.endsWith(".git") || has("HEAD") || has("worktrees") || (has("objects") && has("refs"));
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function lookAt(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch {
    // Its maker has closed the folder: git does not come there either.
    return undefined;
  }
}
