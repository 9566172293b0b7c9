/** Parses the text of a scope. Pure. */
import type { NamedScope, NetScope } from "../model/scope.ts";
import { quoted, type Refusal, refusal } from "../model/refusal.ts";
import { malformed } from "./net-scope.ts";
import { readNetScope } from "./net-scope.ts";

/** Values of `$PROJECT`, and of `$HOME` and `~`. */
export type Folders = { readonly project: string; readonly home: string };

/** Parses a scope; a refusal for text that cannot be granted. */
export function readScope(text: string, folders: Folders): NamedScope | NetScope | Refusal {
  if (text.startsWith("net:")) return readNetScope(text);
  const kind = text.startsWith("fs.read:") ? "fs.read" : "fs.write";
  const written = text.slice(kind.length + 1);
  const below = written.endsWith("/**");
  const path = absolute(below ? written.slice(0, -3) || "/" : written, folders);
  if (path === undefined) return malformed(text, "a path that begins with '/', '~', '$HOME' or '$PROJECT'");
  if (path.includes("*")) return malformed(text, "one path, or path/** (no other '*')");
  if (/\p{Cc}|\p{Cf}/u.test(path)) return malformed(text, "a path without control characters");
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) return climbs(text);
  return { asked: text, kind, path: `/${names.join("/")}`, below };
}

function absolute(path: string, { project, home }: Folders): string | undefined {
  const variable = /^(\$PROJECT|\$\{PROJECT\}|\$HOME|\$\{HOME\}|~)(?=\/|$)/.exec(path)?.[0];
  if (variable === undefined) return path.startsWith("/") ? path : undefined;
  return `${variable.includes("PROJECT") ? project : home}${path.slice(variable.length)}`;
}

/** The target of `..` depends on earlier links, so a person could not see the granted path. */
function climbs(text: string): Refusal {
  return refusal(
    "scope_denied",
    `Cannot grant ${quoted(text)}: it contains '..', which can lead anywhere`,
    "Write the path without '..'",
  );
}
