import { posix } from "node:path";
import { coverOf } from "../../../world/backend.ts";

/** The folders of a project and a home. */
export type Folders = { readonly project: string; readonly home: string };

/**
 * Returns the deny pattern that may cover a path, or undefined. A pattern with more than `*`, `?`, `**` and `{a,b}` counts as
 * covering everything below its plain beginning: denying is the safe answer. Pure.
 */
export function deniedBy(path: string, patterns: readonly string[], folders: Folders): string | undefined {
  return patterns.find((pattern) => coverage(pattern, folders)(path));
}

/** Same as {@link deniedBy}, for many paths: parses each pattern once. */
export function compiledDenials(
  patterns: readonly string[],
  folders: Folders,
): (path: string) => string | undefined {
  const rows = patterns.map((pattern) => ({ pattern, covers: coverage(pattern, folders) }));
  return (path) => rows.find(({ covers }) => covers(path))?.pattern;
}

function coverage(pattern: string, folders: Folders): (path: string) => boolean {
  const absolute = absolutePattern(pattern, folders);
  if (/[[\\]/.test(absolute)) return (path) => isWithin(path, plainBeginning(absolute));
  return coverOf(absolute).covers;
}

/** Replaces the variables in a policy's path. */
export function absolutePath(path: string, { project, home }: Folders): string {
  return path
    .replace(/^(~|\$HOME|\$\{HOME\})(?=\/|$)/, () => home)
    .replace(/^(\$PROJECT|\$\{PROJECT\})(?=\/|$)/, () => project);
}

export function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}

/** Whether a list of scopes (`path` or `path/**`) covers a path. */
export function isCovered(path: string, scopes: readonly string[], folders: Folders): boolean {
  return scopes.some((scope) => {
    const absolute = absolutePath(scope, folders);
    return absolute.endsWith("/**") ? isWithin(path, absolute.slice(0, -3)) : path === absolute;
  });
}

function absolutePattern(pattern: string, folders: Folders): string {
  const absolute = absolutePath(pattern, folders);
  return posix.normalize(absolute.startsWith("/") ? absolute : `${folders.project}/${absolute}`);
}

function plainBeginning(pattern: string): string {
  const plain = pattern.slice(0, pattern.search(/[[{\\*?]/));
  return plain.slice(0, Math.max(plain.lastIndexOf("/"), 1));
}
