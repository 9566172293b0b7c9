/**
 * Plans folders whose writes stay in the world: each is a veil with an upper layer, or, if the host has no such folder or refuses
 * an overlay there, an empty folder of the broker's. Pure.
 */
import { join } from "node:path";
import type { WorldSpec } from "../model/world.ts";
import type { Denials } from "./denials.ts";
import type { HostFacts } from "./host-facts.ts";
import type { MountOperation } from "./operations.ts";
import {
  holdsMounts,
  isOfKernel,
  isPrivate,
  isReadable,
  isWithin,
  shallowFirst,
  withoutStars,
} from "./scopes.ts";

/** A folder of the world, and the layers on the host that receive its writes. */
export type KeptWrites = { readonly target: string; readonly layers: string };

export type Scratch = {
  /** Folders added to the layer of whiteouts as mount points, whether or not the host has them. Applied before any veil. */
  readonly folders: readonly MountOperation[];
  /** Applied after the veils. */
  readonly operations: readonly MountOperation[];
  readonly kept: readonly KeptWrites[];
};

/**
 * Returns the folders of `files.scratch`, links followed, without folders inside another. For isolated commands, writes to
 * `files.write` outside the project stay in the world too.
 */
export function scratchFolders(spec: WorldSpec, { hidden }: Denials, facts: HostFacts): readonly string[] {
  if (facts.layers === undefined) return [];
  const { scratch = [], write } = spec.files;
  const isolated = spec.access.kind === "overlay" ? write.filter((path) => path.endsWith("/**")) : [];
  const own = [spec.project, ...(spec.gitFolder === undefined ? [] : [spec.gitFolder])];
  const opened = spec.access.kind === "overlay" ? own : [...own, ...write.map(withoutStars)];
  const folders = [...scratch, ...isolated]
    .map(withoutStars)
    .flatMap((path) => (facts.kind(path) === "missing" ? path : (facts.real(path) ?? [])))
    .filter((path) => path !== "/" && !isPrivate(path) && !isOfKernel(path))
    .filter((path) => facts.kind(path) === "folder" || facts.kind(path) === "missing")
    .filter((path) => ![...opened, ...hidden, ...spec.sealed].some((folder) => isWithin(path, folder)));
  return shallowFirst(folders).filter(
    (path, _at, all) => !all.some((other) => other !== path && isWithin(path, other)),
  );
}

/** The veils of a plan, and the paths with a place of their own. */
export type Veils = {
  readonly veils: readonly string[];
  readonly isVeiled: (path: string) => boolean;
};

/** Plans the scratch folders not yet covered: nothing is needed for a folder inside a veil with layers, or around such veils. */
export function scratchMounts(
  folders: readonly string[],
  { veils, isVeiled }: Veils,
  spec: WorldSpec,
  { hidden }: Denials,
  facts: HostFacts,
): Scratch {
  const { layers } = facts;
  if (layers === undefined) return { folders: [], operations: [], kept: [] };
  const own = folders
    .filter((folder) => !veils.some((veil) => isWithin(veil, folder)))
    .filter((folder) => !holdsMounts(folder, facts))
    // Without a folder as mount point, and no way to make one, writes there fail as elsewhere.
    .filter((folder) => facts.kind(folder) !== "missing" || isVeiled(folder) || isPlaceless(folder, spec))
    .map((target, at) => ({ target, layers: join(layers, `scratch-${at}`) }));
  return {
    folders: own
      .filter(({ target }) => isVeiled(target))
      .map(({ target }) => ({ op: "folder", target }) as const),
    operations: own.flatMap((each) => place(each, spec, hidden, facts)),
    kept: own,
  };
}

function place(
  { target, layers }: KeptWrites,
  spec: WorldSpec,
  hidden: readonly string[],
  facts: HostFacts,
): readonly MountOperation[] {
  const isSeen = isReadable(target, spec);
  const point: MountOperation[] = isPlaceless(target, spec) ? [{ op: "dir", target, mode: "755" }] : [];
  if (!isSeen || facts.kind(target) !== "folder" || facts.unveilable.has(target))
    return [...point, { op: "bind", source: join(layers, "upper"), target, access: "kept" }];
  const sealed = sealedIn(target, spec, facts).filter((path) => !hidden.some((name) => isWithin(path, name)));
  return [
    ...point,
    { op: "veil", source: target, target, layers, userxattr: facts.userNamespace },
    ...sealed.map((path) => ({ op: "readonly", target: path }) as const),
  ];
}

/** Whether the folder lies in the world's own root instead of a host tree: with `read` scopes, only the listed trees are shown. */
function isPlaceless(target: string, { files }: WorldSpec): boolean {
  return !files.read.some((scope) => scope.endsWith("/**") && isWithin(target, withoutStars(scope)));
}

/** Paths that stay as on the host: literal denials of writing, and the installation; later commands inside read both. */
function sealedIn(folder: string, spec: WorldSpec, facts: HostFacts): readonly string[] {
  return shallowFirst([...spec.files.denyWrite, ...spec.sealed].map(withoutStars)).filter(
    (path) => isWithin(path, folder) && ["file", "folder"].includes(facts.kind(path)),
  );
}
