/**
 * From a world's spec to its mount plan. Pure: facts about the host come in as data and functions, so that every
 * plan can be tested as data, without root and without a mount.
 */
import { join } from "node:path";
import type { WorldSpec } from "../model/world.ts";
import { type DeniedName, denials, unsearched, type Zone } from "./denials.ts";
import type { HostFacts } from "./host-facts.ts";
import { hostTrees } from "./host-trees.ts";
import { devices, privateFolders, processes } from "./kernel-folders.ts";
import { nameFiles } from "./name-files.ts";
import { preload } from "./preload.ts";
import type { MountOperation } from "./operations.ts";
import type { KeptWrites } from "./scratch.ts";
import { maskedSockets, sharedSocketMounts, sharedSockets } from "./sockets.ts";
import { isVeiled, type TreePart } from "./tree-parts.ts";
import {
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
  /** What init denies by itself, at once and for as long as the world lives. */
  readonly denied: readonly DeniedName[];
  readonly zones: readonly Zone[];
  /** Host trees that are worth a veil and shown as they are. */
  readonly bare: number;
  /** Host trees beyond those that a plan places. */
  readonly beyond: number;
  /** Folders and files outside the project that are written as they are on the host. */
  readonly opened: readonly string[];
  /** Where writes stay in the world, outside the project. */
  readonly kept: readonly KeptWrites[];
  /** Paths in the world of the host's sockets that its commands may connect to. */
  readonly sockets: readonly string[];
  /** Denied names of the host over which no veil could be made: covered if they stand there now, and not hidden. */
  readonly unhidden: number;
};

/**
 * The order is the security argument: the read-only host first, then what is writable from shallow to deep, then what
 * is private, then the project, and what takes away (sealed, sockets) after that, so that nothing opened later
 * uncovers it. Denied names come last of all: init looks for them in the finished tree.
 */
export function mountPlan(asked: WorldSpec, facts: HostFacts): MountPlan {
  const spec = { ...asked, files: { ...asked.files, write: openable(asked, facts) } };
  const project = projectPlace(spec, facts);
  const writable = writablePaths(spec, facts);
  const git = gitFolder(spec, facts);
  const bound = [
    ...(project === undefined ? [] : [spec.project]),
    ...(git.length === 0 || spec.gitFolder === undefined ? [] : [spec.gitFolder]),
    ...writable,
  ];
  const opened = bound.filter((path) => facts.kind(path) === "folder" && isWritable(path, spec));
  const gone = denials(spec, bound, facts);
  const seen = (path: string): boolean => !gone.hidden.some((name) => isWithin(path, name));
  const kept = bound.filter(seen);
  const trees = hostTrees(spec, gone, facts);
  const ground = { seen, bound, isVeiled: (path: string) => isVeiled(path, trees.parts) };
  const shared = sharedSockets(spec, ground, facts);
  const outside = writable.filter((path) => seen(path) && !isWithin(path, spec.project));
  return {
    mounts: [
      ...trees.operations,
      ...devices(spec),
      ...(trees.spines.length > 0 ? [{ op: "sources", target: "/dev/.trees" } as const] : []),
      ...processes(facts),
      ...outside.flatMap((path) => [...placeFor(path, writable, spec, facts), bindWritable(path)]),
      ...privateFolders(spec, facts),
      ...preload(facts),
      ...(kept.includes(spec.gitFolder ?? "") ? git : []),
      ...(kept.includes(spec.project) ? (project ?? []) : []),
      ...writable.filter((path) => seen(path) && isWithin(path, spec.project)).map(bindWritable),
      ...(facts.namesServed ? nameFiles(facts.hostname) : []),
      ...sharedSocketMounts(shared, spec, ground),
      ...pinned(spec, opened, facts),
      ...sealed(spec, opened, facts),
      ...unveiledNames(gone.hidden, trees.parts, facts),
      ...maskedSockets(spec, shared, ground, facts),
      // A write into the root that is made for it would be lost with the world, and nobody told.
      ...(readsEverything(spec) ? [] : [{ op: "closed" } as const]),
    ],
    sockets: shared.map(({ target }) => target),
    denied: gone.names,
    unhidden: gone.hidden.filter((path) => !isVeiled(path, trees.parts)).length,
    zones: [...zones(spec, kept, facts), ...unsearched()],
    opened: [...kept.filter((path) => isOwnGit(path, spec)), ...outside],
    bare: trees.parts.filter(({ kind }) => kind === "bare").length,
    beyond: trees.beyond,
    kept: trees.kept,
  };
}

/**
 * What may be written without the kernel's own folders, which would be the host's: its processes, switches and devices.
 * A project in `/dev/shm` is its own. Everything is each of its folders; what lies directly in `/` stays as it is.
 */
function openable({ files, project }: WorldSpec, facts: HostFacts): readonly string[] {
  const each = files.write.flatMap((path) =>
    path === "/**" ? facts.folders("/").map((name) => `/${name}/**`) : [path],
  );
  return each.filter((path) => !isOfKernel(withoutStars(path)) || isWithin(withoutStars(path), project));
}

/**
 * The folders and files outside the project, and special places in it, that are bound writable. None for an overlay:
 * a command whose changes are to be held may not make others elsewhere that are not.
 */
function writablePaths(spec: WorldSpec, facts: HostFacts): readonly string[] {
  if (spec.access.kind === "overlay") return [];
  const paths = spec.files.write
    .filter((path) => withoutStars(path) !== spec.project && withoutStars(path) !== spec.gitFolder)
    .filter((path) => isWithin(path, spec.project) || !isPrivate(withoutStars(path)))
    .filter((path) => mayBeWritable(path, facts));
  const seals = present(spec.sealed, facts);
  return shallowFirst(paths.map(withoutStars)).filter((path) => !inAny(seals, path));
}

/**
 * A bare folder name allows no writes below it, and a path with a link on its way could be led elsewhere by
 * whoever may write the link: neither is bound, which is the stricter reading.
 */
function mayBeWritable(path: string, facts: HostFacts): boolean {
  const kind = facts.kind(withoutStars(path));
  return path.endsWith("/**") ? kind === "folder" : kind === "file";
}

function bindWritable(path: string): MountOperation {
  return { op: "bind", source: path, target: path, access: "rw" };
}

/** What may be written is there to be read too: outside what `read` shows it needs a place of its own to be bound at. */
function placeFor(
  path: string,
  writable: readonly string[],
  { files }: WorldSpec,
  facts: HostFacts,
): readonly MountOperation[] {
  const shown = files.read.filter((scope) => scope.endsWith("/**")).map(withoutStars);
  const bound = writable.filter((other) => other !== path);
  if (inAny([...shown, ...bound], path)) return [];
  return facts.kind(path) === "file"
    ? [{ op: "file", target: path }]
    : [{ op: "dir", target: path, mode: "755" }];
}

/** Also below a private folder, as the project. One that became a link since it was looked at is not bound. */
function gitFolder(spec: WorldSpec, facts: HostFacts): readonly MountOperation[] {
  const path = spec.gitFolder;
  if (path === undefined || !isReadable(path, spec) || facts.kind(path) !== "folder") return [];
  const below = isPrivate(path) || !readsEverything(spec);
  const place: MountOperation[] = below ? [{ op: "dir", target: path, mode: "755" }] : [];
  return [...place, { op: "bind", source: path, target: path, access: isWritable(path, spec) ? "rw" : "ro" }];
}

/** Whether commands write there beside the project. */
function isOwnGit(path: string, spec: WorldSpec): boolean {
  return path === spec.gitFolder && isWritable(path, spec) && !isWithin(path, spec.project);
}

/**
 * How the project gets its own place; undefined when it has none: a project that may be neither read nor written is
 * not there (its commands cannot enter it, and are told so), and one that may only be read is seen as the host's
 * other trees are, unless it lies where the world has folders of its own.
 */
function projectPlace(spec: WorldSpec, facts: HostFacts): readonly MountOperation[] | undefined {
  if (!isReadable(spec.project, spec)) return undefined;
  const below = isPrivate(spec.project) || !readsEverything(spec);
  const place: MountOperation[] = below ? [{ op: "dir", target: spec.project, mode: "755" }] : [];
  if (spec.access.kind === "overlay") return [...place, overlay(spec.project, spec.access.layers, facts)];
  const access = isWritable(spec.project, spec) ? "rw" : "ro";
  if (access === "ro" && !below) return undefined;
  return [...place, { op: "bind", source: spec.project, target: spec.project, access }];
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
 * A folder above what is sealed could be renamed, and another one put in its place. So each is bound onto itself:
 * the kernel does not rename a mount point (EBUSY). In an overlay that is not needed: a rename there is held too.
 * `opened` are the folders that are bound writable, mount points already. Only what lies below one of them is pinned:
 * a writable bind of any other folder would open it.
 */
function pinned(spec: WorldSpec, opened: readonly string[], facts: HostFacts): readonly MountOperation[] {
  if (spec.access.kind === "overlay") return [];
  const above = present(spec.sealed, facts).flatMap((path) => foldersAbove(path));
  return shallowFirst(above)
    .filter((path) => inAny(opened, path) && !opened.includes(path))
    .map((path) => ({ op: "bind", source: path, target: path, access: "rw" }));
}

function foldersAbove(path: string): readonly string[] {
  const parts = path.split("/").slice(1, -1);
  return parts.map((_part, at) => `/${parts.slice(0, at + 1).join("/")}`);
}

function sealed(spec: WorldSpec, opened: readonly string[], facts: HostFacts): readonly MountOperation[] {
  return present(spec.sealed, facts)
    .filter((path) => inAny(opened, path))
    .map((target) => ({ op: "readonly", target }));
}

/** Where no veil could be made, a denied name that exists is at least covered. */
function unveiledNames(
  names: readonly string[],
  parts: readonly TreePart[],
  facts: HostFacts,
): readonly MountOperation[] {
  return names
    .filter((path) => !isVeiled(path, parts) && facts.kind(path) !== "missing")
    .map((target) => ({ op: "mask", target }));
}

function inAny(folders: readonly string[], path: string): boolean {
  return folders.some((folder) => isWithin(path, folder));
}

/** The existing places that a list of paths names, each where its links lead, and at every other path that shows it. */
function present(paths: readonly string[], facts: HostFacts): readonly string[] {
  const real = paths.flatMap((path) => facts.real(withoutStars(path)) ?? []);
  return shallowFirst(real.flatMap((path) => [path, ...facts.otherNames(path).map((other) => other.path)]));
}
