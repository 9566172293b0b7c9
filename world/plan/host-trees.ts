/**
 * The host as a world sees it: read-only, through veils (overlays under a layer of whiteouts) wherever the kernel
 * makes one, since only there denied names are gone for good and sockets do not connect. Pure.
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

/** More trees than this get no part of their own, and the vector says how many. Each is a mount, and init refreshes so many (`VEILS_MAX`). */
export const MAX_PARTS = 512;

export type HostTrees = {
  readonly operations: readonly MountOperation[];
  /** All of them that are not simply a part of the host's tree as it is. */
  readonly parts: readonly TreePart[];
  /** How many more there would be. */
  readonly beyond: number;
  /** Where writes stay in the world. */
  readonly kept: readonly KeptWrites[];
  /** Folders of our own on the way to a mount. */
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
    // What is hidden as a whole is covered instead: there is nothing in it to be seen through a veil.
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

/** Files of settings that this world can have. They tell of its network, so one without a network of its own has none. */
function settings(spec: WorldSpec, { hidden }: Denials, facts: HostFacts): readonly SettingsFile[] {
  if (!facts.namesServed) return [];
  return (spec.settings ?? []).filter(({ path }) => {
    const isHosts = !isPrivate(path) && !isOfKernel(path) && isReadable(path, spec);
    const isDenied = spec.files.denyRead.some((pattern) => patternCovers(pattern, path));
    const isHidden = isDenied || hidden.some((name) => isWithin(path, name));
    return isHosts && !isHidden && facts.kind(dirname(path)) === "folder";
  });
}

/** The folders of such files that lie below no veil: a veil over that folder alone costs the rest of the tree nothing. */
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

/** What is there when only some paths may be read: an empty root, and each of them bound in its place. */
function scaffold(spec: WorldSpec, facts: HostFacts): readonly MountOperation[] {
  return [
    { op: "tmpfs", target: "/", options: "mode=755,size=16m,nr_inodes=64k" },
    ...["/dev", "/proc", ...PRIVATE].map((target) => ({ op: "dir", target, mode: "755" }) as const),
    ...readable(spec, facts).flatMap((path) => inPlace(path, facts)),
  ];
}

/** A bare folder name gives nothing below it to read, as it gives nothing to write. */
function readable(spec: WorldSpec, facts: HostFacts): readonly string[] {
  const named = spec.files.read.filter((path) => path.endsWith("/**") || facts.kind(path) !== "folder");
  return shallowFirst(named.map(withoutStars));
}

/** A readable path that is a link (`/bin` on merged systems) stays the same link inside. */
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

/** Writes stay in the world where the veil itself lies in a scratch folder. */
function veil(path: string, at: number, scratch: readonly string[], facts: HostFacts): VeilOperation {
  const keeps = facts.layers !== undefined && scratch.some((folder) => isWithin(path, folder));
  const layers = keeps ? join(facts.layers, `${at}`) : undefined;
  return { op: "veil", source: path, target: path, layers, userxattr: facts.userNamespace };
}

function asVeil(path: string): TreePart {
  return { kind: "veil", path };
}

/** Init leaves these children of spines to the plan. */
function isPlaced({ kind, path }: TreePart, spines: readonly string[]): boolean {
  return kind === "spine" || (kind === "bare" && spines.includes(dirname(path)));
}

/** A tree over which nothing could be made lies in the bind of all of the host already, unless what is above it was made anew. */
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
