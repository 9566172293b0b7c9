/**
 * Plans a world's mounts from its spec. Pure: facts about the host come in as data and functions, so every plan can be tested as
 * data, without root and without a mount.
 */
import { join } from "node:path";
import type { WorldSpec } from "../model/world.ts";
import { type DeniedName, denials, unsearched, type Zone } from "./denials.ts";
import type { HostFacts } from "./host-facts.ts";
import { hostTrees } from "./host-trees.ts";
import { devices, privateFolders, processes } from "./kernel-folders.ts";
import { hostNameFiles, nameFiles } from "./name-files.ts";
import {
  type HomePlace,
  homePlan,
  isInOwnHome,
  otherHomes,
  outsideOwnHome,
  sharedReads,
  withoutRealHome,
} from "./own-home.ts";
import { preload } from "./preload.ts";
import type { MountOperation } from "./operations.ts";
import type { KeptWrites } from "./scratch.ts";
import { maskedSockets, sharedSocketMounts, sharedSockets } from "./sockets.ts";
import { isVeiled, type TreePart } from "./tree-parts.ts";
import {
  isInAny,
  isOfKernel,
  isPrivate,
  isReadable,
  isWithin,
  isWritable,
  readsEverything,
  shallowFirst,
  withoutStars,
} from "./scopes.ts";

export type MountPlan = {
  readonly mounts: readonly MountOperation[];
  /** Names denied by init from the start and for the world's whole life. */
  readonly denied: readonly DeniedName[];
  readonly zones: readonly Zone[];
  /** Host trees that should have a veil but are shown as they are. */
  readonly bare: readonly string[];
  /** Number of host trees beyond the maximum of a plan. */
  readonly beyond: number;
  /** Mount points that the world's own home must have before init applies the plan. */
  readonly homePlaces: readonly HomePlace[];
  /** Folders and files outside the project bound writable from the host. */
  readonly opened: readonly string[];
  /** Folders outside the project whose writes stay in the world. */
  readonly kept: readonly KeptWrites[];
  /** Paths, inside the world, of the host's sockets open to its commands. */
  readonly sockets: readonly string[];
  /** Number of denied host names without a veil: masked if present at the start, but not hidden. */
  readonly unhidden: number;
};

/**
 * Returns the plan. Its order is the security argument: the read-only host first, then writable paths from shallow to deep, then
 * private folders, then the world's own home with the shared paths of the real one, then the project, and finally the
 * restrictions (sealed, sockets), so that nothing opened later uncovers a restricted path. Denied names come last of all: init
 * looks for them in the finished tree.
 */
export function mountPlan(asked: WorldSpec, facts: HostFacts): MountPlan {
  const open = { ...asked, files: { ...asked.files, write: openable(asked, facts) } };
  const spec = withoutRealHome(open, facts);
  const project = projectPlace(spec, facts);
  const writable = writablePaths(spec, facts);
  const git = gitFolder(spec, facts);
  const bound = [
    ...(project === undefined ? [] : [spec.project]),
    ...(git.length === 0 || spec.gitFolder === undefined ? [] : [spec.gitFolder]),
    ...writable,
  ];
  const opened = bound.filter((path) => facts.kind(path) === "folder" && isWritable(path, spec));
  const others = otherHomes(spec, facts);
  const denied = denials(spec, bound, facts);
  const gone = { ...denied, hidden: shallowFirst([...denied.hidden, ...others]) };
  const seen = (path: string): boolean => !gone.hidden.some((name) => isWithin(path, name));
  const kept = bound.filter(seen);
  const trees = hostTrees(outsideOwnHome(spec), gone, facts);
  const shared = sharedSockets(spec, { seen }, facts);
  const read = sharedReads(spec, bound, facts).filter(({ path }) => seen(path));
  const home = homePlan(spec, { bound: kept, sockets: shared.map(({ target }) => target), read }, facts);
  const parts = [...trees.parts, ...home.parts];
  const ground = { seen, bound, isVeiled: (path: string) => isVeiled(path, parts) };
  const outside = writable.filter((path) => seen(path) && !isWithin(path, spec.project));
  const isInHome = (path: string): boolean => isInOwnHome(path, spec);
  return {
    mounts: [
      ...trees.operations,
      ...devices(spec),
      ...(trees.spines.length > 0 ? [{ op: "sources", target: "/dev/.trees" } as const] : []),
      ...processes(facts),
      ...outside
        .filter((path) => !isInHome(path))
        .flatMap((path) => [...placeFor(path, writable, spec, facts), bindWritable(path)]),
      ...privateFolders(spec, facts),
      ...preload(facts),
      ...home.operations,
      ...outside.filter(isInHome).map(bindWritable),
      ...(kept.includes(spec.gitFolder ?? "") ? git : []),
      ...(kept.includes(spec.project) ? (project ?? []) : []),
      ...writable.filter((path) => seen(path) && isWithin(path, spec.project)).map(bindWritable),
      ...(facts.namesServed ? nameFiles(spec, facts) : hostNameFiles(facts.hostResolver)),
      ...sharedSocketMounts(shared, spec, ground),
      ...pinned(spec, opened, facts),
      ...sealed(spec, opened, facts),
      ...others.filter((path) => isInAny(bound, path)).map((target) => ({ op: "mask", target }) as const),
      ...unveiledNames(gone.hidden.filter(home.shows), parts, facts),
      ...maskedSockets(spec, shared, ground, facts).filter(({ target }) => home.shows(target)),
      // A write into the newly made root would be lost with the world, without a report.
      ...(readsEverything(spec) ? [] : [{ op: "closed" } as const]),
    ],
    homePlaces: home.places,
    sockets: shared.map(({ target }) => target),
    denied: gone.names,
    unhidden: gone.hidden.filter((path) => home.shows(path) && !isVeiled(path, parts)).length,
    zones: [...zones(spec, kept, facts), ...unsearched(), ...home.unsearched],
    opened: [...kept.filter((path) => isOwnGit(path, spec)), ...outside],
    bare: parts.flatMap(({ kind, path }) =>
      kind === "bare" && facts.reachesNoPipes?.(path) !== true ? path : [],
    ),
    beyond: trees.beyond,
    kept: trees.kept,
  };
}

/**
 * Returns the writable scopes without the kernel's folders, which would expose the host's processes, switches and devices; a
 * project in `/dev/shm` stays writable. `/**` becomes each folder of `/`; files directly in `/` stay as they are.
 */
function openable({ files, project }: WorldSpec, facts: HostFacts): readonly string[] {
  const each = files.write.flatMap((path) =>
    path === "/**" ? facts.folders("/").map((name) => `/${name}/**`) : [path],
  );
  return each.filter((path) => !isOfKernel(withoutStars(path)) || isWithin(withoutStars(path), project));
}

/**
 * Returns the folders and files outside the project, and special places inside, to be bound writable. Empty for an overlay: a
 * command with held changes may not make direct changes elsewhere.
 */
function writablePaths(spec: WorldSpec, facts: HostFacts): readonly string[] {
  if (spec.access.kind === "overlay") return [];
  const paths = spec.files.write
    .filter((path) => withoutStars(path) !== spec.project && withoutStars(path) !== spec.gitFolder)
    .filter((path) => isWithin(path, spec.project) || !isPrivate(withoutStars(path)))
    .filter((path) => mayBeWritable(path, facts));
  const seals = present(spec.sealed, facts);
  return shallowFirst(paths.map(withoutStars)).filter((path) => !isInAny(seals, path));
}

/**
 * A bare folder name allows no writes below. A path through a link is not bound either: whoever may write the link could lead the
 * bind elsewhere.
 */
function mayBeWritable(path: string, facts: HostFacts): boolean {
  const kind = facts.kind(withoutStars(path));
  return path.endsWith("/**") ? kind === "folder" : kind === "file";
}

function bindWritable(path: string): MountOperation {
  return { op: "bind", source: path, target: path, access: "rw" };
}

/** A writable path must be readable too: outside the trees shown by `read`, the bind needs a mount point. */
function placeFor(
  path: string,
  writable: readonly string[],
  { files }: WorldSpec,
  facts: HostFacts,
): readonly MountOperation[] {
  const shown = files.read.filter((scope) => scope.endsWith("/**")).map(withoutStars);
  const bound = writable.filter((other) => other !== path);
  if (isInAny([...shown, ...bound], path)) return [];
  return facts.kind(path) === "file"
    ? [{ op: "file", target: path }]
    : [{ op: "dir", target: path, mode: "755" }];
}

/** Binds the git folder, like the project also below a private folder. A path that has meanwhile become a link is not bound. */
function gitFolder(spec: WorldSpec, facts: HostFacts): readonly MountOperation[] {
  const path = spec.gitFolder;
  if (path === undefined || !isReadable(path, spec) || facts.kind(path) !== "folder") return [];
  const place: MountOperation[] = isPlaceless(path, spec) ? [{ op: "dir", target: path, mode: "755" }] : [];
  return [...place, { op: "bind", source: path, target: path, access: isWritable(path, spec) ? "rw" : "ro" }];
}

/** Whether a path is a git folder outside the project that commands may write. */
function isOwnGit(path: string, spec: WorldSpec): boolean {
  return path === spec.gitFolder && isWritable(path, spec) && !isWithin(path, spec.project);
}

/**
 * Returns the operations that place the project; undefined without a place of its own. A project that may be neither read nor
 * written is absent (commands cannot enter and get an error). A read-only project is visible as part of the host's trees, unless
 * the world has its own folders there.
 */
function projectPlace(spec: WorldSpec, facts: HostFacts): readonly MountOperation[] | undefined {
  if (!isReadable(spec.project, spec)) return undefined;
  const isCovered = isInOwnHome(spec.project, spec);
  const below = isPlaceless(spec.project, spec);
  const place: MountOperation[] = below ? [{ op: "dir", target: spec.project, mode: "755" }] : [];
  if (spec.access.kind === "overlay") return [...place, overlay(spec.project, spec.access.layers, facts)];
  const access = isWritable(spec.project, spec) ? "rw" : "ro";
  if (access === "ro" && !below && !isCovered) return undefined;
  return [...place, { op: "bind", source: spec.project, target: spec.project, access }];
}

/** Whether init makes a mount point; an own home has its mount points already (`homePlaces`). */
function isPlaceless(path: string, spec: WorldSpec): boolean {
  return !isInOwnHome(path, spec) && (isPrivate(path) || !readsEverything(spec));
}

function overlay(path: string, layers: string, facts: HostFacts): MountOperation {
  return {
    op: "overlay",
    lower: path,
    upper: join(layers, "upper"),
    work: join(layers, "work"),
    target: path,
    userxattr: facts.userNamespace,
  };
}

function zones(spec: WorldSpec, bound: readonly string[], facts: HostFacts): readonly Zone[] {
  return bound
    .filter((path) => facts.kind(path) === "folder" || facts.kind(path) === "file")
    .map((path) => ({
      kind: path === spec.project && spec.access.kind === "overlay" ? "once" : "watch",
      path,
    }));
}

/**
 * Pins the folders above a sealed path, which could otherwise be renamed and replaced: each is bound onto itself, because the
 * kernel does not rename mount points (EBUSY). Unnecessary over an overlay, where a rename is held too. `opened`: the folders
 * bound writable, already mount points. Only folders below one of them are pinned: a writable bind elsewhere would open the
 * folder.
 */
function pinned(spec: WorldSpec, opened: readonly string[], facts: HostFacts): readonly MountOperation[] {
  if (spec.access.kind === "overlay") return [];
  const above = present(spec.sealed, facts).flatMap((path) => foldersAbove(path));
  return shallowFirst(above)
    .filter((path) => isInAny(opened, path) && !opened.includes(path))
    .map((path) => ({ op: "bind", source: path, target: path, access: "rw" }));
}

function foldersAbove(path: string): readonly string[] {
  const parts = path.split("/").slice(1, -1);
  return parts.map((_part, at) => `/${parts.slice(0, at + 1).join("/")}`);
}

function sealed(spec: WorldSpec, opened: readonly string[], facts: HostFacts): readonly MountOperation[] {
  return present(spec.sealed, facts)
    .filter((path) => isInAny(opened, path))
    .map((target) => ({ op: "readonly", target }));
}

/** Masks existing denied names where no veil hides them. */
function unveiledNames(
  names: readonly string[],
  parts: readonly TreePart[],
  facts: HostFacts,
): readonly MountOperation[] {
  return names
    .filter((path) => !isVeiled(path, parts) && facts.kind(path) !== "missing")
    .map((target) => ({ op: "mask", target }));
}

/** Resolves the existing paths of a list, and adds every other path that shows the same place. */
function present(paths: readonly string[], facts: HostFacts): readonly string[] {
  const real = paths.flatMap((path) => facts.real(withoutStars(path)) ?? []);
  return shallowFirst(real.flatMap((path) => [path, ...facts.otherNames(path).map((other) => other.path)]));
}
