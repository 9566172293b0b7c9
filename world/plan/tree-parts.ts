/**
 * How a host tree with mounts below it is shown: an overlay shows one mount only, and an ordinary user's cannot even lie over a
 * folder with another mount below. Pure.
 */
import { join } from "node:path";
import type { HostFacts } from "./host-facts.ts";
import { isOfKernel, isPrivate, isWithin } from "./scopes.ts";

/**
 * `veil`: an overlay, which shows nothing of the mounts below. `spine`: a folder of our own in which each child has its place
 * (world/native/mount/spines.h). `bare`: as the host has it, read-only.
 */
export type TreePart = { readonly kind: "veil" | "spine" | "bare"; readonly path: string };

/**
 * Trees of programs and settings. No service listens at a socket there, and every command reads them, so they are
 * veiled only for a denied name in them, or for a scratch folder.
 */
export const SYSTEM = /^\/(usr|bin|sbin|lib|lib32|lib64|libx32|boot|etc)(\/|$)/;

/** What `path` is made of, parents first. `worth` says whether a tree is to be veiled at all. */
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
  // The other children are init's to place, as they are when it looks.
  const mounted = children.filter((child) => holdsMounts(child, facts) || facts.unveilable.has(child));
  return [{ kind: "spine", path }, ...mounted.flatMap((child) => placed(child, worth, facts))];
}

/** The topmost mounts below a veil, each with its own parts, or as it is. */
function mountsIn(path: string, worth: (path: string) => boolean, facts: HostFacts): readonly TreePart[] {
  const points = facts.mountPoints.filter((point) => point !== path && isWithin(point, path));
  return points
    .filter((point) => !points.some((other) => other !== point && isWithin(point, other)))
    .flatMap((point) => placed(point, worth, facts));
}

/** What nothing can be made of is shown as it is: what lies above it would hide it. */
function placed(path: string, worth: (path: string) => boolean, facts: HostFacts): readonly TreePart[] {
  const parts = partsOf(path, worth, facts);
  const [first] = parts;
  if (first?.path === path) return parts;
  return facts.kind(path) === "folder" || facts.kind(path) === "file"
    ? [{ kind: "bare", path }, ...parts]
    : parts;
}

/** Whether a path is seen through a veil or in a spine: its deepest part says so. */
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
    // Also in a folder that may be entered and not read.
    .map((point) => point.slice(start).split("/", 1)[0] ?? "");
  return [...new Set([...facts.folders(path), ...mounted])].map((name) => join(path, name));
}

function holdsMounts(path: string, facts: HostFacts): boolean {
  return facts.mountPoints.some((point) => point !== path && isWithin(point, path));
}
