/**
 * The host as a world sees it: read-only, through veils (overlays under a layer of whiteouts) wherever the kernel
 * makes one, since only there denied names are gone for good and sockets do not connect. Pure.
 */
import { basename, dirname, join } from "node:path";
import type { SettingsFile, WorldSpec } from "../backend.ts";
import { patternCovers } from "./cover.ts";
import type { Denials } from "./denials.ts";
import type { HostFacts } from "./host-facts.ts";
import type { MountOperation } from "./operations.ts";
import {
  isPrivate,
  isReadable,
  isWithin,
  PRIVATE,
  readsEverything,
  shallowFirst,
  withoutStars,
} from "./scopes.ts";

/** The kernel's own file systems: nothing to veil, and the world gets its own of most of them. */
const KERNEL = ["/proc", "/sys", "/dev"] as const;

/**
 * Trees of programs and settings. No service listens at a socket there, and every command reads them, so they are
 * veiled only for a denied name in them, or to keep what root writes there.
 */
const SYSTEM = /^\/(usr|bin|sbin|lib|lib32|lib64|libx32|boot|etc)(\/|$)/;

/** More trees than this are bound as they are: each is a mount, and a host that has so many submounts is rare. */
const MAX_VEILS = 96;

export type HostTrees = {
  readonly operations: readonly MountOperation[];
  /** The trees that are veiled. */
  readonly veiled: readonly string[];
};

export function hostTrees(spec: WorldSpec, hidden: Denials, facts: HostFacts): HostTrees {
  const trees = readsEverything(spec)
    ? [{ path: "/", made: true }]
    : readable(spec, facts).map((path) => ({ path, made: false }));
  const hiding = trees
    .flatMap(({ path }) => submountFree(path, facts))
    // What is hidden as a whole is covered instead: there is nothing in it to be seen through a veil.
    .filter((path) => !hidden.hidden.some((name) => isWithin(path, name)))
    .filter((path) => isWorthAVeil(path, spec, hidden, facts))
    .slice(0, MAX_VEILS);
  const shown = settings(spec, hidden, facts);
  const veils = [...hiding, ...ownVeils(shown, hiding, facts)];
  return {
    operations: [
      ...(readsEverything(spec) ? [{ op: "root" } as const] : scaffold(spec, facts)),
      ...hidden.hidden
        .filter((path) => veils.some((veil) => isWithin(path, veil)))
        .map((target) => ({ op: "hide", target }) as const),
      ...shown
        .filter(({ path }) => veils.some((veil) => isWithin(path, veil)))
        .map(({ path, text }) => ({ op: "show", target: path, text }) as const),
      ...veils.map((path, at) => veil(path, at, spec, facts)),
    ],
    veiled: veils,
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

/** The largest folders at or below `path` that have no mount point below them: an overlay shows one mount only. */
function submountFree(path: string, facts: HostFacts): readonly string[] {
  if (isPrivate(path) || isOfKernel(path)) return [];
  if (path !== "/" && facts.kind(path) !== "folder") return [];
  const within = facts.mountPoints.some((point) => point !== path && isWithin(point, path));
  if (path !== "/" && !within && !facts.unveilable.has(path)) return [path];
  if (path !== "/" && !within) return [];
  const names = [...new Set([...facts.folders(path), ...mountedBelow(path, facts)])];
  return names.flatMap((name) => submountFree(join(path, name), facts));
}

/** Names in a folder that lead to mount points: also in one that may be entered and not read. */
function mountedBelow(path: string, facts: HostFacts): readonly string[] {
  const start = path === "/" ? 1 : path.length + 1;
  return facts.mountPoints
    .filter((point) => point !== path && isWithin(point, path))
    .map((point) => point.slice(start).split("/", 1)[0] ?? "");
}

export function isOfKernel(path: string): boolean {
  return KERNEL.some((folder) => isWithin(path, folder));
}

function isWorthAVeil(path: string, spec: WorldSpec, hidden: Denials, facts: HostFacts): boolean {
  if (!SYSTEM.test(path)) return true;
  if (keepsStrays(spec, facts) && !facts.userNamespace) return true;
  return (
    hidden.hidden.some((name) => isWithin(name, path)) ||
    hidden.searched.some((folder) => isWithin(folder, path) || isWithin(path, folder))
  );
}

function keepsStrays(spec: WorldSpec, facts: HostFacts): boolean {
  return spec.strays === "kept" && facts.strays !== undefined;
}

function veil(path: string, at: number, spec: WorldSpec, facts: HostFacts): MountOperation {
  const layers =
    keepsStrays(spec, facts) && facts.strays !== undefined ? join(facts.strays, `${at}`) : undefined;
  return { op: "veil", source: path, target: path, layers, userxattr: facts.userNamespace };
}
