/** Resolves the path of a scope on the host. */
import { lookExactlyAt, realPath } from "../model/host-paths.ts";
import type { NamedScope, PlacedScope, Scope } from "../model/scope.ts";
import { quoted, type Refusal, refusal } from "../model/refusal.ts";
import { netText } from "./net-scope.ts";

/** Resolves a scope; a refusal when nothing suitable exists. */
export function placeScope(named: NamedScope): PlacedScope | Refusal {
  const path = realPath(named.path);
  const stat = path === undefined ? undefined : lookExactlyAt(path);
  if (path === undefined || stat === undefined) return missing(named);
  const type = stat.isDirectory() ? "folder" : stat.isFile() ? "file" : undefined;
  if (type === undefined) return unfit(named, "it is neither a folder nor a file");
  if (type === "file" && named.below) return unfit(named, "it is a file, with nothing below it");
  const identity = `${type}:${stat.dev}:${stat.ino}`;
  return { named, kind: named.kind, path, type, identity, owner: Number(stat.uid) };
}

/** Prints a scope: `fs.write:/real/path`, with `/**` if asked so, or `net:host:port`. */
export function scopeText(scope: Scope): string {
  if (scope.kind === "net") return netText(scope);
  return `${scope.kind}:${scope.path}${scope.named.below ? "/**" : ""}`;
}

export function filesOf(scopes: readonly Scope[]): readonly PlacedScope[] {
  return scopes.filter((scope) => scope.kind !== "net");
}

/** Converts a scope to an entry of `fs.read` or `fs.write`, where a folder's bare name excludes its content. */
export function scopeEntry({ path, type }: Pick<PlacedScope, "path" | "type">): string {
  if (type === "file") return path;
  return path === "/" ? "/**" : `${path}/**`;
}

function missing(named: NamedScope): Refusal {
  return refusal(
    "scope_denied",
    `Cannot grant ${quoted(named.asked)}: the broker's user finds no file or folder at ${quoted(named.path)}`,
    "Ask for an existing folder in which the command can make it",
  );
}

function unfit(named: NamedScope, why: string): Refusal {
  return refusal(
    "scope_denied",
    `Cannot grant ${quoted(named.asked)}: ${why}`,
    "Ask for a folder or a regular file",
  );
}
