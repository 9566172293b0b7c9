/**
 * Divides a host tree with mounts below: an overlay shows only one mount, and an ordinary user's overlay cannot even lie over a
 * folder with another mount below. Pure.
 */
import { join } from "node:path";
import type { HostFacts } from "./host-facts.ts";
import { holdsMounts, isOfKernel, isPrivate, isWithin } from "./scopes.ts";

/**
 * `veil`: an overlay, without the mounts below. `spine`: a folder rebuilt in memory with a place for each child
 * (world/native/mount/spines.h). `bare`: as on the host, read-only.
 */
export type TreePart = { readonly kind: "veil" | "spine" | "bare"; readonly path: string };

/**
 * Trees of programs and settings. They hold no listening sockets, and every command reads them, so only a denied name or a
 * scratch folder inside justifies a veil.
 */
export const SYSTEM = /^\/(usr|bin|sbin|lib|lib32|lib64|libx32|boot|etc)(\/|$)/;

/** Returns the parts of `path`, parents first. `worth`: whether a tree should be veiled at all. */
export function partsOf(
  path: string,
  worth: (path: string) => boolean,
  facts: HostFacts,
): readonly TreePart[] {
  if (isPrivate(path) || isOfKernel(path)) return [];
  if (path !== "/" && facts.kind(path) !== "folder") return [];
  if (path !== "/" && !holdsMounts(path, facts))
    return worth(path) ? [{ kind: facts.unveilable.has(path) ? "bare" : "veil", path }] : [];
  if (path !== "/" && !facts.userNamespace && !facts.unveilable.has(path))
    return worth(path) ? [{ kind: "veil", path }, ...mountsIn(path, worth, facts)] : [];
  const children = childrenOf(path, facts);
  const refused = facts.unveilable.has(path);
  if (path === "/" || refused || SYSTEM.test(path) || facts.listable?.(path) === false) {
    const own = refused && worth(path) ? [{ kind: "bare", path } as const] : [];
    return [...own, ...children.flatMap((child) => partsOf(child, worth, facts))];
  }
  // Init places the remaining children, as found at that moment.
  const mounted = children.filter((child) => holdsMounts(child, facts) || facts.unveilable.has(child));
  return [{ kind: "spine", path }, ...mounted.flatMap((child) => placed(child, worth, facts))];
}

/** Returns the topmost mounts below a veil, each divided into parts or shown bare. */
function mountsIn(path: string, worth: (path: string) => boolean, facts: HostFacts): readonly TreePart[] {
  const points = facts.mountPoints.filter((point) => point !== path && isWithin(point, path));
  return points
    .filter((point) => !points.some((other) => other !== point && isWithin(point, other)))
    .flatMap((point) => placed(point, worth, facts));
}

/** Shows a mount without parts as bare: the part above would hide the mount. */
function placed(path: string, worth: (path: string) => boolean, facts: HostFacts): readonly TreePart[] {
  const parts = partsOf(path, worth, facts);
  const [first] = parts;
  if (first?.path === path) return parts;
  return facts.kind(path) === "folder" || facts.kind(path) === "file"
    ? [{ kind: "bare", path }, ...parts]
    : parts;
}

/** Whether a path is seen through a veil or in a spine, according to its deepest part. */
export function isVeiled(path: string, parts: readonly TreePart[]): boolean {
  const around = parts.filter((part) => isWithin(path, part.path));
  const deepest = around.reduce<TreePart | undefined>(
    (one, other) => (one === undefined || other.path.length >= one.path.length ? other : one),
    undefined,
  );
  return deepest !== undefined && deepest.kind !== "bare";
}

function childrenOf(path: string, facts: HostFacts): readonly string[] {
  const start = path === "/" ? 1 : path.length + 1;
  const mounted = facts.mountPoints
    .filter((point) => point !== path && isWithin(point, path))
    // Mount points are known even in a folder without read permission.
    .map((point) => point.slice(start).split("/", 1)[0] ?? "");
  return [...new Set([...facts.folders(path), ...mounted])].map((name) => join(path, name));
}
