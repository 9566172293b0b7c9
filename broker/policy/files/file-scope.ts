/** Converts a policy's file lists to absolute paths. Pure. */
import { normalize } from "node:path";
import type { PolicyDocument } from "../../../schemas/generated/types.ts";
import type { FileScope } from "../../../world/backend.ts";
import { fileLists } from "./file-lists.ts";

/** Returns a policy's lists as absolute paths. A deny row that begins with `**` holds in every tree. */
export function fileScope(document: PolicyDocument, project: string, home: string): FileScope {
  const files = fileLists(document);
  const paths = (list: readonly string[]): readonly string[] =>
    list.map((path) => plain(absolute(path, project, home, (folder) => folder)));
  const patterns = (list: readonly string[]): readonly string[] =>
    list.map((path) => (path.startsWith("**/") ? `/${path}` : absolute(path, project, home, literalPattern)));
  return {
    read: paths(files.read),
    denyRead: patterns(files.deny_read),
    write: paths(files.write),
    denyWrite: patterns(files.deny_write),
    seal: patterns(files.sealed),
    scratch: paths(files.scratch),
  };
}

/** Makes a policy's patterns absolute. */
export function pathPatterns(list: readonly string[], project: string, home: string): readonly string[] {
  return list.map((path) => absolute(path, project, home, literalPattern));
}

/** Removes `.`, `..`, repeated and final slashes: paths are compared as strings. */
function plain(path: string): string {
  return normalize(path).replace(/(.)\/$/, "$1");
}

/** Escapes a path to a pattern that matches only the path: no character of a folder's name acts as a wildcard. */
export function literalPattern(path: string): string {
  return path.replace(/[\\*?[\]{}]/g, "\\$&");
}

function absolute(path: string, project: string, home: string, spelled: (folder: string) => string): string {
  const variable = /^(\$PROJECT|\$\{PROJECT\}|\$HOME|\$\{HOME\}|~)(?=\/|$)/.exec(path)?.[0];
  if (variable === undefined) return path.startsWith("/") ? path : `${spelled(project)}/${path}`;
  return `${spelled(variable.includes("PROJECT") ? project : home)}${path.slice(variable.length)}`;
}
