/** Why a mount of the world refused a write, in the words of the policies, and what a person or an agent can do about it. */
import { existsSync, lstatSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import type { World, WorldViolation, WritePlace } from "../../world/backend.ts";
import type { Broker } from "../broker.ts";
import { fileLists } from "../policy/files/file-lists.ts";
import { fileScope } from "../policy/files/file-scope.ts";
import { HELD_WHERE_ISOLATED, isHeldName } from "../policy/files/held-names.ts";
import type { Job } from "../model/job.ts";
import { DENIED_READS } from "../policy/files/default-denials.ts";
import { absolutePath, deniedBy, type Folders, isCovered, isWithin } from "../policy/files/path-denials.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import { sealedInstallation } from "../worlds/world-spec.ts";

/** What the lists say of the paths of one command. */
export type WriteRules = Folders & {
  readonly policies: readonly CompiledPolicy[];
  /** The running installation: no policy opens it. */
  readonly installation: readonly string[];
  /** The folders of `fs.write` as the world has them. */
  readonly places: readonly WritePlace[];
  /** The command's PATH. */
  readonly searched: string;
  /** The command writes straight to the project; an isolated one could write more of it. */
  readonly plain: boolean;
  /** What git does with a path that its settings or links name. */
  readonly gitReason?: (path: string) => string | undefined;
};

/** What is asked about the writes of one command in a world. */
export function writeRules(
  { around, gitNamed }: Broker,
  { effective, place, environment }: Job,
  { spec }: World,
): WriteRules {
  const { project } = place;
  const installation = sealedInstallation(project, around);
  const { places = [], access } = spec;
  const searched = environment.variables["PATH"] ?? "";
  const gitReason = (path: string): string | undefined => gitNamed.reason(project, path);
  const own = { project, home: around.home, installation, places, searched, gitReason };
  return { policies: effective.policies, ...own, plain: access.kind === "direct" };
}

/**
 * The same violation with the list that is the reason, and the command that lifts it; of a name that an isolated command may write,
 * that it may. Others come back as they are.
 */
export function explainWrite(violation: WorldViolation, rules: WriteRules): WorldViolation {
  const { kind, subject: path, message } = violation;
  // One that says how many more there were is about no path.
  if (!path.startsWith("/")) return violation;
  if (kind === "write")
    return { ...violation, message: `'${path}' was not written: ${reasonOf(path, rules)}` };
  const isName = kind === "setting" || kind === "denied_name";
  return isName ? { ...violation, message: `${message}${otherWay(path, rules)}` } : violation;
}

/** To stand behind a reason. */
function otherWay(path: string, { policies, project, home, plain }: WriteRules): string {
  const denied = policies.flatMap(({ document }) => fileScope(document, project, home).denyWrite);
  return plain && isHeldName(path, denied, project) ? `; ${HELD_WHERE_ISOLATED}` : "";
}

/** Why a path is not written, and which command would be let write it. */
export function reasonOf(path: string, rules: WriteRules): string {
  return `${listedReason(path, rules)}${otherWay(path, rules)}`;
}

function listedReason(path: string, rules: WriteRules): string {
  if (rules.installation.some((own) => isWithin(path, own)))
    return "it belongs to the running installation of Substrate, which no command may change";
  const unopened = rules.places.find((place) => place.why !== null && isWithin(path, place.path));
  if (unopened !== undefined) return `'${unopened.path}/**' in fs.write opens nothing: ${unopened.why}`;
  for (const { id, document, rules: set } of rules.policies) {
    const { deny_write, sealed, write } = fileLists(document);
    const denied = deniedBy(path, deny_write, rules);
    if (denied !== undefined)
      return `'${denied}' stands in fs.deny_write of policy '${id}' (${set.sources.denyWrite})`;
    if (deniedBy(path, sealed, rules) !== undefined)
      return `git runs what stands there by itself, and policy '${id}' lets no command change it (fs.deny_write); a person can, outside of Substrate`;
    if (!isCovered(path, write, rules)) {
      const outside = `it is outside fs.write of policy '${id}' (${set.sources.write})`;
      const place = worthOpening(path, rules);
      if (place === undefined)
        return `${outside}, and no folder around it can be opened alone; a person can do this outside of Substrate, and POST /v1/request_scopes asks for another place`;
      const word = /^[\w@%+=:,./-]+$/.test(place) ? place : `'${place.replaceAll("'", "'\\''")}'`;
      return `${outside}; "substrate policy allow write ${word}" lets it, or ask for the scope 'fs.write:${place}' (POST /v1/request_scopes)`;
    }
  }
  const named = rules.gitReason?.(path);
  if (named !== undefined)
    return `${named}, and no command may change it; a person can, outside of Substrate`;
  return "it is, or holds, a place that this world keeps as it is: a denied or sealed name, or git's own settings";
}

/**
 * What a person would open for it: the bare repository that it lies in, else the folder that is there, else the path itself where
 * that folder is nobody's to open (the home, what contains it, what lies directly in `/`, or what holds credentials or programs) and
 * the path is there. One that is not is often a lock or a temporary name: a folder that was made there would keep the person's own
 * programs from working.
 */
function worthOpening(path: string, rules: WriteRules): string | undefined {
  const folders: string[] = [];
  for (let at = dirname(path); at !== dirname(at); at = dirname(at)) if (isFolder(at)) folders.push(at);
  const repository = folders.find((folder) => GIT_PARTS.every((name) => existsSync(join(folder, name))));
  const [nearest = "/"] = folders;
  const place = repository ?? nearest;
  if (!isWithin(rules.home, place) && dirname(place) !== "/" && !holdsWorth(place, rules)) return place;
  return existsSync(path) && !holdsWorth(path, rules) ? path : undefined;
}

/**
 * Whether whoever may write there could replace credentials, or programs that a person starts by their names: the place holds
 * some or may hold them later, or is one of them.
 */
function holdsWorth(place: string, rules: WriteRules): boolean {
  const credentials = DENIED_READS.map((row) => absolutePath(row.path, rules));
  const programs = rules.searched.split(":").filter((folder) => folder.startsWith("/"));
  return (
    [...credentials, ...programs].some((one) => isWithin(one, place) || isWithin(place, one)) ||
    isOfTools(place, rules.home)
  );
}

/** A person's own shell may search more folders than this command. Those of a working tree that are called so are none of them. */
function isOfTools(place: string, home: string): boolean {
  const isIn = /(?:^|\/)s?bin(?:\/|$)/.test(place);
  if (!isWithin(place, home)) return isIn;
  const below = relative(home, place);
  return (isIn || isFolder(join(place, "bin"))) && /^(?:\.|s?bin(?:\/|$))/.test(below);
}

/** What every git folder holds. */
const GIT_PARTS = ["HEAD", "objects", "refs"] as const;

function isFolder(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    // Closed to the broker, which is closed to the person too.
    return false;
  }
}
