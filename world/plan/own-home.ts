/**
 * Plans a home of its own: a folder of the broker's covers the user's home, and only named paths of the real one are shown on top.
 * Pure.
 *
 * Commands of several worlds write the folder at the same time, so no mount may follow a link in it. Each folder above a mount
 * point is therefore bound onto itself first, from shallow to deep: init follows no link at the end of a target, and a mount point
 * cannot be renamed or replaced from inside.
 */
import { dirname } from "node:path";
import type { OwnHome, WorldSpec } from "../model/world.ts";
import type { Zone } from "./denials.ts";
import type { HostFacts } from "./host-facts.ts";
import type { MountOperation } from "./operations.ts";
import { holdsMounts, isInAny, isPrivate, isWithin, shallowFirst, withoutStars } from "./scopes.ts";
import { SYSTEM, type TreePart } from "./tree-parts.ts";

/** A mount point in the own home, by its path in the world. */
export type HomePlace = { readonly path: string; readonly kind: "folder" | "file" };

export type HomePlan = {
  /** The own home with its pinned folders and the read-only shared paths. Empty without an own home. */
  readonly operations: readonly MountOperation[];
  /** Mount points that the folder on the host must have, in the order in which they are used. */
  readonly places: readonly HomePlace[];
  /** The shared paths, as parts of the host's tree. */
  readonly parts: readonly TreePart[];
  /** Whether a world shows the host's file at a path; false for the covered rest of the real home. */
  readonly shows: (path: string) => boolean;
  /** Trees excluded from the search for hidden names: a mask for a covered name would cover the own home's. */
  readonly unsearched: readonly Zone[];
};

/** Host paths that the world shows: folders, files and sockets bound by the caller, and those to be shown read-only. */
export type SharedPaths = {
  readonly bound: readonly string[];
  readonly sockets: readonly string[];
  readonly read: readonly HomePlace[];
};

/** Whether a path lies in the home that is covered. */
export function isInOwnHome(path: string, { ownHome }: Pick<WorldSpec, "ownHome">): boolean {
  return ownHome !== undefined && isWithin(path, ownHome.path);
}

/**
 * Removes what would open the real home as a whole or keep writes there: a scope for a folder around the home opens the other
 * folders, and the project.
 */
export function withoutRealHome(spec: WorldSpec, facts: HostFacts): WorldSpec {
  const { ownHome, files, settings = [] } = spec;
  if (ownHome === undefined) return spec;
  const own = [spec.project, ...(spec.gitFolder === undefined ? [] : [spec.gitFolder])];
  const write = files.write.flatMap((scope) => [
    ...besides(scope, ownHome.path, facts),
    ...own.filter((path) => isAround(scope, ownHome.path) && covers(scope, path)).map((path) => `${path}/**`),
  ]);
  const scratch = (files.scratch ?? []).filter((scope) => !isWithin(withoutStars(scope), ownHome.path));
  return {
    ...spec,
    files: { ...files, write: [...new Set(write)], scratch },
    settings: settings.filter(({ path }) => !isWithin(path, ownHome.path)),
  };
}

/** The spec of the host's trees: scopes in the home are planned here. */
export function outsideOwnHome(spec: WorldSpec): WorldSpec {
  if (spec.ownHome === undefined) return spec;
  const read = spec.files.read.filter((scope) => !isInOwnHome(withoutStars(scope), spec));
  return { ...spec, files: { ...spec.files, read } };
}

/**
 * Other paths at which the host shows the covered home or a part of it, such as a second mount. Left out: trees of programs and
 * settings, which a person may have mounted in the home, and a folder around the project or its git folder.
 */
export function otherHomes(
  { ownHome, project, gitFolder = project }: WorldSpec,
  facts: HostFacts,
): readonly string[] {
  if (ownHome === undefined) return [];
  const names = facts.otherNames(ownHome.path).map(({ path }) => path);
  const isNeeded = (path: string): boolean => isWithin(project, path) || isWithin(gitFolder, path);
  return names.filter((path) => !SYSTEM.test(path) && !isPrivate(path) && !isNeeded(path));
}

/** The paths that `files.read` names below the home. A scope for the home itself, or around it, names none; neither does a link. */
export function sharedReads(
  spec: WorldSpec,
  opened: readonly string[],
  facts: HostFacts,
): readonly HomePlace[] {
  const { ownHome, files } = spec;
  if (ownHome === undefined) return [];
  const named = files.read.flatMap((scope) => placeOf(scope, facts));
  return outermost(named.filter(({ path }) => isBelow(path, ownHome.path) && !isInAny(opened, path)));
}

export function homePlan(spec: WorldSpec, { bound, sockets, read }: SharedPaths, facts: HostFacts): HomePlan {
  const { ownHome } = spec;
  if (ownHome === undefined) return NO_HOME;
  const { path: home, folder } = ownHome;
  const shared: readonly HomePlace[] = [
    ...bound.map((path) => ({ path, kind: facts.kind(path) === "folder" ? "folder" : "file" }) as const),
    ...sockets.map((path) => ({ path, kind: "file" }) as const),
    ...read,
  ];
  const inHome = shared.filter(({ path }) => isBelow(path, home));
  const places = outermost(inHome);
  const above = shallowFirst(places.flatMap(({ path }) => foldersBetween(home, path)));
  const parts = read.filter(({ kind }) => kind === "folder").map(({ path }) => part(path, facts));
  const onHost = (path: string): string => `${folder}${path.slice(home.length)}`;
  return {
    operations: [
      ...(isPlaceless(home, spec) ? [{ op: "dir", target: home, mode: "755" } as const] : []),
      { op: "bind", source: folder, target: home, access: "rw" },
      ...above.map((target) => ({ op: "bind", source: onHost(target), target, access: "rw" }) as const),
      ...read.map((place) => show(place, parts, facts)),
    ],
    places,
    parts,
    shows: (path) => !isWithin(path, home) || inHome.some((place) => isWithin(path, place.path)),
    unsearched: parts.length === 0 ? [{ kind: "skip", path: home }] : [],
  };
}

const NO_HOME: HomePlan = { operations: [], places: [], parts: [], shows: () => true, unsearched: [] };

/**
 * Returns the folders that a world with the mount points `own` must keep in place for a world with `theirs`, parents first.
 * Below a mount of its own, a world does not see the home.
 */
export function pinsFor(
  { path: home }: Pick<OwnHome, "path">,
  theirs: readonly HomePlace[],
  own: readonly HomePlace[],
): readonly string[] {
  const folders = theirs.flatMap(({ path, kind }) => [
    ...foldersBetween(home, path),
    ...(kind === "folder" ? [path] : []),
  ]);
  return shallowFirst(folders).filter((path) => !own.some((place) => isWithin(path, place.path)));
}

/** Replaces a scope around the home by its other folders; a scope for the home itself opens nothing. */
function besides(scope: string, home: string, facts: HostFacts): readonly string[] {
  const folder = withoutStars(scope);
  if (folder === home) return [];
  if (!isAround(scope, home)) return [scope];
  return facts
    .folders(folder)
    .flatMap((name) => besides(`${folder === "/" ? "" : folder}/${name}/**`, home, facts));
}

function isAround(scope: string, home: string): boolean {
  return scope.endsWith("/**") && isWithin(home, withoutStars(scope));
}

function covers(scope: string, path: string): boolean {
  return isWithin(path, withoutStars(scope));
}

/** A bare folder name opens nothing below, and a link nothing at all: whoever may write the link could lead it elsewhere. */
function placeOf(scope: string, facts: HostFacts): readonly HomePlace[] {
  const path = withoutStars(scope);
  const kind = facts.kind(path);
  if (kind === "file") return [{ path, kind }];
  return kind === "folder" && scope.endsWith("/**") ? [{ path, kind }] : [];
}

function isBelow(path: string, folder: string): boolean {
  return path !== folder && isWithin(path, folder);
}

function outermost(places: readonly HomePlace[]): readonly HomePlace[] {
  const kinds = new Map(places.map(({ path, kind }) => [path, kind]));
  return shallowFirst([...kinds.keys()])
    .filter((path) => ![...kinds.keys()].some((other) => isBelow(path, other)))
    .map((path) => ({ path, kind: kinds.get(path) ?? "folder" }));
}

function foldersBetween(home: string, path: string): readonly string[] {
  const parent = dirname(path);
  return parent === home ? [] : [...foldersBetween(home, parent), parent];
}

/** An overlay shows only one mount, so a shared folder with mounts below is bound as it is. */
function part(path: string, facts: HostFacts): TreePart {
  return { kind: facts.unveilable.has(path) || holdsMounts(path, facts) ? "bare" : "veil", path };
}

function show({ path, kind }: HomePlace, parts: readonly TreePart[], facts: HostFacts): MountOperation {
  const isVeil = kind === "folder" && parts.some((each) => each.path === path && each.kind === "veil");
  return isVeil
    ? { op: "veil", source: path, target: path, layers: undefined, userxattr: facts.userNamespace }
    : { op: "bind", source: path, target: path, access: "ro" };
}

/** Whether no host tree has a folder at the home's path. */
function isPlaceless(home: string, { files }: WorldSpec): boolean {
  return (
    isPrivate(home) || !files.read.some((scope) => isAround(scope, home) && withoutStars(scope) !== home)
  );
}
