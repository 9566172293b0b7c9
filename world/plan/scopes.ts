/** Questions about paths and scopes that every part of a plan asks. Pure; paths are absolute and normal. */
import type { WorldSpec } from "../model/world.ts";

/** Folders that are always the world's own. */
export const PRIVATE = ["/tmp", "/var/tmp", "/run"] as const;

/** The kernel's own file systems: nothing to veil, and the world gets its own of most of them. */
const KERNEL = ["/proc", "/sys", "/dev"] as const;

export function isOfKernel(path: string): boolean {
  return KERNEL.some((folder) => isWithin(path, folder));
}

export function readsEverything(spec: WorldSpec): boolean {
  return spec.files.read.includes("/**");
}

/** Whether a path can be seen and written inside: in the project or its git folder, or in a writable path that is bound. */
export function isWritable(path: string, spec: WorldSpec): boolean {
  if (spec.access.kind === "overlay") return isWithin(path, spec.project);
  const isBound = isWithin(path, spec.project) || isWithin(path, spec.gitFolder ?? spec.project);
  return (isBound || !isPrivate(path)) && isInScope(path, spec);
}

/** Whether a path lies in what may be read, or in what may be written, which can be read too. */
export function isReadable(path: string, spec: WorldSpec): boolean {
  return [...spec.files.read, ...spec.files.write].some(
    (scope) => scope.endsWith("/**") && isWithin(path, withoutStars(scope)),
  );
}

/** A single file opens that file alone: the folders above it stay as they are. */
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

export function withoutStars(path: string): string {
  if (path === "/**") return "/";
  return path.endsWith("/**") ? path.slice(0, -3) : path;
}

export function shallowFirst(paths: readonly string[]): readonly string[] {
  return [...new Set(paths)].sort((a, b) => a.split("/").length - b.split("/").length || (a < b ? -1 : 1));
}
