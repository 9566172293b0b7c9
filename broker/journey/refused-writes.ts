/** Explains a write refused by the world's mounts: the policy's reason, and how a person or an agent can lift the refusal. */
import { accessSync, constants, existsSync, lstatSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { World, WorldViolation, WritePlace } from "../../world/backend.ts";
import type { Broker } from "../broker.ts";
import { fileLists } from "../policy/files/file-lists.ts";
import { fileScope } from "../policy/files/file-scope.ts";
import { shellWord } from "../model/shell-word.ts";
import { asInProject, HELD_WHERE_ISOLATED, isHeldName } from "../policy/files/held-names.ts";
import type { Job } from "../model/job.ts";
import { DENIED_READS } from "../policy/files/default-denials.ts";
import { absolutePath, deniedBy, type Folders, isCovered, isWithin } from "../policy/files/path-denials.ts";
import { isKernels } from "../model/folders.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import { sealedInstallation } from "../worlds/world-spec.ts";

/** Rules for the paths written by one command. */
export type WriteRules = Folders & {
  readonly policies: readonly CompiledPolicy[];
  /** Folders of the running installation: no policy opens them. */
  readonly installation: readonly string[];
  /** The folders of `fs.write` as mounted in the world. */
  readonly places: readonly WritePlace[];
  /** The command's PATH. */
  readonly searched: string;
  /** Set for a command with a home of its own. */
  readonly ownHome?: OwnHomeRules;
  /** Folders of the project in which agents' sessions began. */
  readonly began?: readonly string[];
  /** Whether the command writes straight to the project; an isolated command could write more of the project. */
  readonly plain: boolean;
  /** Explains how git uses a path named by its settings or links. */
  readonly gitReason?: (path: string) => string | undefined;
  /** Whether this user could write the file or folder without Substrate. */
  readonly isWritable: (path: string) => boolean;
};

/** The user's home, and the paths below it that a world with a home of its own shows. */
export type OwnHomeRules = { readonly path: string; readonly shown: readonly string[] };

/** Collects the rules for the writes of one command in a world. */
export function writeRules(
  { around, gitNamed }: Broker,
  { effective, place, environment, site: { began } }: Job,
  { spec }: World,
): WriteRules {
  const { project } = place;
  const installation = sealedInstallation(project, around);
  const { places = [], access } = spec;
  const searched = environment.variables["PATH"] ?? "";
  const gitReason = (path: string): string | undefined => gitNamed.reason(project, path);
  const own = {
    project,
    home: around.home,
    installation,
    places,
    searched,
    gitReason,
    ...(began === undefined ? {} : { began }),
  };
  return {
    ...{ policies: effective.policies, ...own, ...ownHomeOf(spec) },
    ...{ plain: access.kind === "direct", isWritable },
  };
}

function ownHomeOf({ ownHome, files, project, gitFolder }: World["spec"]): Pick<WriteRules, "ownHome"> {
  if (ownHome === undefined) return {};
  const { path } = ownHome;
  const named = [...files.read, ...files.write].map((scope) => scope.replace(/\/\*\*$/, ""));
  const shown = [...named, project, gitFolder ?? project].filter(
    (one) => one !== path && isWithin(one, path),
  );
  return { ownHome: { path, shown } };
}

/** Whether a world with a home of its own has its own file at a path, instead of the user's. */
export function isCoveredByOwnHome(path: string, { ownHome }: Pick<WriteRules, "ownHome">): boolean {
  if (ownHome === undefined || !isWithin(path, ownHome.path)) return false;
  return !ownHome.shown.some((one) => isWithin(path, one));
}

/**
 * Adds the deciding list and the command that lifts it to a violation; for a name writable by isolated commands, says so. Other
 * violations are returned unchanged.
 */
export function explainWrite(violation: WorldViolation, rules: WriteRules): WorldViolation {
  const { kind, subject: path, message } = violation;
  // A line that counts further violations has no path.
  if (!path.startsWith("/")) return violation;
  if (kind === "write")
    return { ...violation, message: `'${path}' was not written: ${reasonOf(path, rules)}` };
  const isName = kind === "setting" || kind === "denied_name";
  if (kind === "denied_name" && OF_FOLDERS.test(path) && existsSync(join(rules.project, ".git")))
    return { ...violation, message: `${message}${otherWay(path, rules)}${SHOWN_AS_DELETED}` };
  return isName ? { ...violation, message: `${message}${otherWay(path, rules)}` } : violation;
}

/** Names that rows deny in each folder of a project, and that branches have. */
const OF_FOLDERS = /\/\.claude\/skills$/;

const SHOWN_AS_DELETED =
  ". Where git tracks it, git shows it as deleted until a person restores it (git checkout -- PATH, outside of Substrate): do not commit that";

/** The same for a command that is isolated, but not by each of its policies: one of them denies the name still. */
const HELD_BY_ALL =
  "the change can be held only where every policy in force isolates the command, and not by a narrowing profile alone";

const HELD_BY_NONE =
  "a policy that only observes isolates no command; a person can write it outside of Substrate";

/** Returns a suffix for a reason: "isolate the command", where isolation helps. */
function otherWay(path: string, { policies, project, home, plain, began = [] }: WriteRules): string {
  const denied = policies.flatMap(({ document }) => fileScope(document, project, home).denyWrite);
  const twin = asInProject(path, project, began) ?? path;
  if (![path, twin].some((each) => isHeldName(each, denied, project))) return "";
  const enforces = policies.some(({ document }) => document.mode === "enforce");
  const isolated = enforces ? HELD_WHERE_ISOLATED : HELD_BY_NONE;
  return `; ${plain ? isolated : HELD_BY_ALL}`;
}

/** Says why a path cannot be written, and which command opens the path. */
export function reasonOf(path: string, rules: WriteRules): string {
  return `${listedReason(path, rules)}${otherWay(path, rules)}`;
}

/** As world/native/deny/worktrees.c. */
const WORKTREE_STATE = /\.git\/worktrees\/[^/]+\/(?:HEAD|gitdir|index|logs\/HEAD)$/;

/** Says that a list hides the path from commands, without revealing whether the file exists. */
export function hiddenReason(path: string, rules: WriteRules): string | undefined {
  for (const { id, document, rules: set } of rules.policies) {
    const pattern = deniedBy(path, fileLists(document).deny_read, rules);
    if (pattern !== undefined)
      return `is hidden, whether it exists or not: '${pattern}' is in fs.deny_read of policy '${id}' (${set.sources.denyRead})`;
  }
  return undefined;
}

function listedReason(path: string, rules: WriteRules): string {
  if (rules.installation.some((own) => isWithin(path, own)))
    return "it belongs to the installation of Substrate, which no command may change";
  if (isKernels(path))
    return "it belongs to the kernel, and no policy opens it; a person can write it outside of Substrate";
  const unopened = rules.places.find((place) => place.why !== null && isWithin(path, place.path));
  if (unopened !== undefined) return `'${unopened.path}/**' in fs.write has no effect: ${unopened.why}`;
  // A hidden folder looks missing: gpg tries to make its ~/.gnupg again, and that write is refused.
  const hidden = hiddenReason(path, rules);
  if (hidden !== undefined) return `it ${hidden}`;
  for (const { id, document, rules: set } of rules.policies) {
    const { deny_write, sealed, write } = fileLists(document);
    const denied = deniedBy(path, deny_write, rules);
    if (denied !== undefined)
      return `'${denied}' is in fs.deny_write of policy '${id}' (${set.sources.denyWrite})`;
    const twin = asInProject(path, rules.project, rules.began ?? []);
    const there = twin === undefined ? undefined : deniedBy(twin, deny_write, rules);
    const rows = fileScope(document, rules.project, rules.home).denyWrite;
    if (twin !== undefined && there !== undefined && isHeldName(twin, rows, rules.project))
      return `'${there}' is in fs.deny_write of policy '${id}' (${set.sources.denyWrite}), which holds below the project too where a session of an agent began`;
    if (deniedBy(path, sealed, rules) !== undefined)
      return `git runs this file by itself, so policy '${id}' lets no command change it (fs.deny_write); a person can change it outside of Substrate`;
    if (!isCovered(path, write, rules)) {
      const outside = `it is outside fs.write of policy '${id}' (${set.sources.write})`;
      if (isClosed(path, rules))
        return `${outside}, and this user may not write there without Substrate either; a person with the right to can`;
      const place = worthOpening(path, rules);
      if (place === undefined)
        return `${outside}, and no folder around it is safe to open; a person can write it outside of Substrate, or ask for another place (POST /v1/request_scopes)`;
      return `${outside}; "substrate policy allow write ${shellWord(place)}" allows it, or ask for the scope 'fs.write:${place}' (POST /v1/request_scopes)`;
    }
  }
  const named = rules.gitReason?.(path);
  if (named !== undefined)
    return `${named}, and no command may change it; a person can change it outside of Substrate`;
  if (WORKTREE_STATE.test(path))
    return "git finds a person's working tree by it, and no command removes one; 'git worktree remove' works outside of Substrate";
  return "it is or contains a protected place: a denied or sealed name, or git's own settings";
}

/** Whether modes keep the path from this user, so that no policy could open it: the folder takes no new name, and the file no byte. */
export function isClosed(path: string, { isWritable }: WriteRules): boolean {
  const [nearest = "/"] = foldersAround(path);
  return !isWritable(nearest) && !(existsSync(path) && isWritable(path));
}

/** Returns the existing folders around a path, nearest first. */
function foldersAround(path: string): readonly string[] {
  const folders: string[] = [];
  for (let at = dirname(path); at !== dirname(at); at = dirname(at)) if (isFolder(at)) folders.push(at);
  return folders;
}

/**
 * Picks the place that a person would open: the bare repository around the path, else the nearest existing folder. When that
 * folder must not be opened (the home, a folder above the home, a folder directly in `/`, or a folder with credentials or
 * programs), an existing path is offered itself. A missing path is not offered: often a lock or a temporary name, and a folder
 * made at that name would break the person's own programs.
 */
function worthOpening(path: string, rules: WriteRules): string | undefined {
  const folders = foldersAround(path);
  const repository = folders.find((folder) => GIT_PARTS.every((name) => existsSync(join(folder, name))));
  const [nearest = "/"] = folders;
  const place = repository ?? nearest;
  if (!isWithin(rules.home, place) && dirname(place) !== "/" && !holdsWorth(place, rules)) return place;
  return existsSync(path) && !holdsWorth(path, rules) ? path : undefined;
}

/**
 * Whether write access there could replace credentials, or programs started by name: the place contains such files, may contain
 * them later, or is such a file.
 */
function holdsWorth(place: string, rules: WriteRules): boolean {
  const credentials = DENIED_READS.map((row) => absolutePath(row.path, rules));
  const programs = rules.searched.split(":").filter((folder) => folder.startsWith("/"));
  return (
    [...credentials, ...programs].some((one) => isWithin(one, place) || isWithin(place, one)) ||
    isOfTools(place, rules.home)
  );
}

/**
 * Whether a place looks like a folder of programs: a person's shell may search more folders than this command's PATH. `bin`
 * folders of a working tree do not count.
 */
function isOfTools(place: string, home: string): boolean {
  const isIn = /(?:^|\/)s?bin(?:\/|$)/.test(place);
  if (!isWithin(place, home)) return isIn;
  const below = relative(home, place);
  return (isIn || isFolder(join(place, "bin"))) && /^(?:\.|s?bin(?:\/|$))/.test(below);
}

export function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    // Gone, or closed to this user: what cannot be written now is not offered.
    return false;
  }
}

/** Entries present in every git folder. */
const GIT_PARTS = ["HEAD", "objects", "refs"] as const;

function isFolder(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    // Closed to the broker, so also closed to the person.
    return false;
  }
}
