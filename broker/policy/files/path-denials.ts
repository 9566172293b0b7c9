import { posix } from "node:path";

/** The folders of a project and a home. */
export type Folders = { readonly project: string; readonly home: string };

/**
 * Returns the deny pattern that may cover a path, or undefined. A pattern with more than `*`, `?`, `**` and `{a,b}` counts as
 * covering everything below its plain beginning: denying is the safe answer. Pure.
 */
export function deniedBy(path: string, patterns: readonly string[], folders: Folders): string | undefined {
  return patterns.find((pattern) =>
    spelledOut(absolutePattern(pattern, folders)).some((one) =>
      /[[{\\]/.test(one) ? isWithin(path, plainBeginning(one)) : asExpression(one).test(path),
    ),
  );
}

/** Expands `a{b,c}d` to `abd` and `acd`. */
function spelledOut(pattern: string): readonly string[] {
  const group = /\{([^{},\\]*(?:,[^{},\\]*)+)\}/.exec(pattern);
  if (group === null) return [pattern];
  const [before, after] = [pattern.slice(0, group.index), pattern.slice(group.index + group[0].length)];
  return (group[1] ?? "").split(",").flatMap((word) => spelledOut(`${before}${word}${after}`));
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

/** A match includes everything below the matched path. */
function asExpression(pattern: string): RegExp {
  const segments = pattern.split("/").filter((segment) => segment !== "");
  const source = segments.map((segment) =>
    /^\*{2,}$/.test(segment) ? "(?:/[^/]+)*" : `/${segmentSource(segment)}`,
  );
  return new RegExp(`^${source.join("")}(?:/|$)`, "s");
}

function segmentSource(segment: string): string {
  return segment
    .replace(/[.+^$()|\\{}[\]]/g, "\\$&")
    .replace(/\*+/g, "[^/]*")
    .replaceAll("?", "[^/]");
}
