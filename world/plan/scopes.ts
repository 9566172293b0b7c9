/** Predicates on paths and scopes, shared by all parts of a plan. Pure; paths are absolute and normal. */
import type { HostFacts } from "./host-facts.ts";
import type { WorldSpec } from "../model/world.ts";

/** Folders always private to the world. */
export const PRIVATE = ["/tmp", "/var/tmp", "/run"] as const;

/** The kernel's file systems: never veiled, and mostly replaced by the world's own. */
const KERNEL = ["/proc", "/sys", "/dev"] as const;

export function isOfKernel(path: string): boolean {
  return KERNEL.some((folder) => isWithin(path, folder));
}

export function readsEverything(spec: WorldSpec): boolean {
  return spec.files.read.includes("/**");
}

/** Whether commands can see and write a path: in the project or its git folder, or in a writable scope bound from the host. */
export function isWritable(path: string, spec: WorldSpec): boolean {
  if (spec.access.kind === "overlay") return isWithin(path, spec.project);
  const isBound = isWithin(path, spec.project) || isWithin(path, spec.gitFolder ?? spec.project);
  return (isBound || !isPrivate(path)) && isInScope(path, spec);
}

/** Whether a path lies in a readable or writable scope; writable implies readable. */
export function isReadable(path: string, spec: WorldSpec): boolean {
  return [...spec.files.read, ...spec.files.write].some(
    (scope) => scope.endsWith("/**") && isWithin(path, withoutStars(scope)),
  );
}

/** A scope for a single file opens only that file; the folders above stay as they are. */
function isInScope(path: string, spec: WorldSpec): boolean {
  return spec.files.write.some((scope) =>
    scope.endsWith("/**") ? isWithin(path, withoutStars(scope)) : path === scope,
  );
}

export function isPrivate(path: string): boolean {
  return [...PRIVATE, "/dev"].some((folder) => isWithin(path, folder));
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}

export function isInAny(folders: readonly string[], path: string): boolean {
  return folders.some((folder) => isWithin(path, folder));
}

/** Whether the host has mounts below a path. */
export function holdsMounts(path: string, facts: Pick<HostFacts, "mountPoints">): boolean {
  return facts.mountPoints.some((point) => point !== path && isWithin(point, path));
}

export function withoutStars(path: string): string {
  if (path === "/**") return "/";
  return path.endsWith("/**") ? path.slice(0, -3) : path;
}

export function shallowFirst(paths: readonly string[]): readonly string[] {
  return [...new Set(paths)].sort((a, b) => a.split("/").length - b.split("/").length || (a < b ? -1 : 1));
}
