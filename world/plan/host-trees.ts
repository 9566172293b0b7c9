/**
 * Plans a world's view of the host: read-only, through veils (overlays under a layer of whiteouts) wherever the kernel makes an
 * overlay; only a veil hides denied names reliably and blocks connections to sockets. Pure.
 */
import { basename, dirname, join } from "node:path";
import type { SettingsFile, WorldSpec } from "../model/world.ts";
import { patternCovers } from "./cover.ts";
import type { Denials } from "./denials.ts";
import type { HostFacts } from "./host-facts.ts";
import type { MountOperation, VeilOperation } from "./operations.ts";
import { isVeiled, partsOf, SYSTEM, type TreePart } from "./tree-parts.ts";
import { type KeptWrites, scratchFolders, scratchMounts } from "./scratch.ts";
import {
  isOfKernel,
  isPrivate,
  isReadable,
  isWithin,
  PRIVATE,
  readsEverything,
  shallowFirst,
  withoutStars,
} from "./scopes.ts";

/**
 * Maximum of planned trees; the isolation vector reports the number beyond. Each tree is a mount, and init refreshes at most
 * `VEILS_MAX`.
 */
export const MAX_PARTS = 512;

export type HostTrees = {
  readonly operations: readonly MountOperation[];
  /** All trees except those shown simply as part of the host's tree. */
  readonly parts: readonly TreePart[];
  /** Number of trees beyond `MAX_PARTS`. */
  readonly beyond: number;
  /** Folders whose writes stay in the world. */
  readonly kept: readonly KeptWrites[];
  /** Folders rebuilt in memory on the path to a mount. */
  readonly spines: readonly string[];
};

export function hostTrees(spec: WorldSpec, hidden: Denials, facts: HostFacts): HostTrees {
  const folders = scratchFolders(spec, hidden, facts);
  const trees = readsEverything(spec)
    ? [{ path: "/", made: true }]
    : readable(spec, facts).map((path) => ({ path, made: false }));
  const worth = (path: string): boolean => isWorthAVeil(path, folders, hidden);
  const wanted = trees
    .flatMap(({ path }) => partsOf(path, worth, facts))
    // A tree hidden as a whole needs no veil: it is masked.
    .filter(({ path }) => !hidden.hidden.some((name) => isWithin(path, name)));
  const parts = wanted.slice(0, MAX_PARTS);
  const hiding = parts.flatMap(({ kind, path }) => (kind === "veil" ? path : []));
  const spines = parts.flatMap(({ kind, path }) => (kind === "spine" ? path : []));
  const shown = settings(spec, hidden, facts);
  const veils = [...hiding, ...ownVeils(shown, hiding, facts)];
  const made = veils.map((path, at) => veil(path, at, folders, facts));
  const lies = (path: string): boolean => isVeiled(path, [...parts, ...veils.map(asVeil)]);
  const scratch = scratchMounts(folders, { veils, isVeiled: lies }, spec, hidden, facts);
  const all = [...parts, ...[...veils, ...folders].map(asVeil)];
  return {
    operations: [
      ...(readsEverything(spec) ? [{ op: "root" } as const] : scaffold(spec, facts)),
      ...hidden.hidden
        .filter((path) => isVeiled(path, all))
        .map((target) => ({ op: "hide", target }) as const),
      ...shown
        .filter(({ path }) => isVeiled(path, all))
        .map(({ path, text }) => ({ op: "show", target: path, text }) as const),
      ...scratch.folders,
      ...parts
        .filter((part) => isPlaced(part, spines))
        .map(({ path }) => ({ op: "spine", target: path }) as const),
      ...parts.flatMap((part) => placePart(part, made, parts)),
      ...made.filter(({ target }) => !hiding.includes(target)),
      ...scratch.operations,
    ],
    parts: all,
    beyond: wanted.length - parts.length,
    spines,
    kept: [...made.flatMap(keptBy), ...scratch.kept],
  };
}

/** Selects settings files to show. The content of the spec's depends on the network, so worlds without a network get none of those. */
function settings(spec: WorldSpec, { hidden }: Denials, facts: HostFacts): readonly SettingsFile[] {
  const wanted = [...(facts.namesServed ? (spec.settings ?? []) : []), ...(facts.rootsOwn ?? [])];
  return wanted.filter(({ path }) => {
    const isHosts = !isPrivate(path) && !isOfKernel(path) && isReadable(path, spec);
    const isDenied = spec.files.denyRead.some((pattern) => patternCovers(pattern, path));
    const isHidden = isDenied || hidden.some((name) => isWithin(path, name));
    return isHosts && !isHidden && facts.kind(dirname(path)) === "folder";
  });
}

/** Returns folders of settings files outside every veil: a veil over such a folder alone costs the rest of the tree nothing. */
function ownVeils(
  shown: readonly SettingsFile[],
  veiled: readonly string[],
  facts: HostFacts,
): readonly string[] {
  const folders = shown.map(({ path }) => dirname(path));
  return shallowFirst(folders).filter(
    (folder) =>
      !veiled.some((veil) => isWithin(folder, veil)) &&
      !facts.unveilable.has(folder) &&
      !facts.mountPoints.some((point) => point !== folder && isWithin(point, folder)),
  );
}

/** Builds the tree for worlds that may read only some paths: an empty root with a bind per path. */
function scaffold(spec: WorldSpec, facts: HostFacts): readonly MountOperation[] {
  return [
    { op: "tmpfs", target: "/", options: "mode=755,size=16m,nr_inodes=64k" },
    ...["/dev", "/proc", ...PRIVATE].map((target) => ({ op: "dir", target, mode: "755" }) as const),
    ...readable(spec, facts).flatMap((path) => inPlace(path, facts)),
  ];
}

/** A bare folder name opens nothing below, for reading as for writing. */
function readable(spec: WorldSpec, facts: HostFacts): readonly string[] {
  const named = spec.files.read.filter((path) => path.endsWith("/**") || facts.kind(path) !== "folder");
  return shallowFirst(named.map(withoutStars));
}

/** Places a readable path; a link (`/bin` on merged systems) stays the same link inside. */
function inPlace(path: string, facts: HostFacts): readonly MountOperation[] {
  const kind = facts.kind(path);
  if (kind === "missing" || kind === "other") return [];
  if (kind === "symlinked") {
    const real = facts.real(path);
    return real === undefined || basename(path) === "" ? [] : [{ op: "symlink", text: real, target: path }];
  }
  return [
    kind === "folder" ? { op: "dir", target: path, mode: "755" } : { op: "file", target: path },
    { op: "bind", source: path, target: path, access: "ro" },
  ];
}

function isWorthAVeil(path: string, scratch: readonly string[], hidden: Denials): boolean {
  if (!SYSTEM.test(path)) return true;
  return (
    hidden.hidden.some((name) => isWithin(name, path)) ||
    hidden.searched.some((folder) => isWithin(folder, path) || isWithin(path, folder)) ||
    scratch.some((folder) => isWithin(folder, path) || isWithin(path, folder))
  );
}

/** Makes a veil; in a scratch folder the veil gets layers, so that writes stay in the world. */
function veil(path: string, at: number, scratch: readonly string[], facts: HostFacts): VeilOperation {
  const keeps = facts.layers !== undefined && scratch.some((folder) => isWithin(path, folder));
  const layers = keeps ? join(facts.layers, `${at}`) : undefined;
  return { op: "veil", source: path, target: path, layers, userxattr: facts.userNamespace };
}

function asVeil(path: string): TreePart {
  return { kind: "veil", path };
}

/** Whether the plan places the tree itself; init places the other children of spines. */
function isPlaced({ kind, path }: TreePart, spines: readonly string[]): boolean {
  return kind === "spine" || (kind === "bare" && spines.includes(dirname(path)));
}

/** Places a tree. A bare tree is already visible through the bind of the whole host, unless a tree above was rebuilt. */
function placePart(
  { kind, path }: TreePart,
  veils: readonly VeilOperation[],
  parts: readonly TreePart[],
): readonly MountOperation[] {
  if (kind === "spine") return [{ op: "fill", target: path }];
  if (kind === "veil") return veils.filter(({ target }) => target === path);
  const isCovered = parts.some((other) => other.path !== path && isWithin(path, other.path));
  return isCovered ? [{ op: "bind", source: path, target: path, access: "ro" }] : [];
}

function keptBy({ target, layers }: VeilOperation): readonly KeptWrites[] {
  return layers === undefined ? [] : [{ target, layers }];
}
