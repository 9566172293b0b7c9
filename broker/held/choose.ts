/** Selects the held changes named by a call. Pure. */
import type { HeldChange } from "../../world/backend.ts";
import { quoted, type Refusal, refusal } from "../model/refusal.ts";
import { bytesOfChangePath } from "./change-path.ts";

/** Returns the named byte paths, normalized and relative; null without names, meaning all changes. */
export function namedPaths(paths: readonly string[] | undefined): readonly string[] | null | Refusal {
  if (paths === undefined) return null;
  const named: string[] = [];
  for (const [index, path] of paths.entries()) {
    const bytes = bytesOfChangePath(path);
    const names = bytes?.replace(/\/+$/, "").split("/") ?? [];
    if (bytes === undefined || names.some((name) => ["", ".", ".."].includes(name)) || bytes.includes("\0"))
      return refusal(
        "invalid_request",
        `paths[${index}]: must be a path as GET /v1/diff shows it, relative to the project, received ${quoted(path)}`,
        "Copy the path from the diff; a folder includes everything below it",
      );
    named.push(names.join("/"));
  }
  return [...new Set(named)];
}

/** Selects the changes at or below the named byte paths; refuses a name without changes. */
export function chosenOf(
  changes: readonly HeldChange[],
  paths: readonly string[] | null,
): { readonly changes: readonly HeldChange[] } | Refusal {
  if (paths === null) return { changes };
  const wanted = new Set(paths);
  const met = new Set<string>();
  const lengths = [...new Set(paths.map(({ length }) => length))];
  const chosen = changes.filter(({ path }) => {
    const over = prefixesOf(path, lengths).filter((prefix) => wanted.has(prefix));
    for (const prefix of over) met.add(prefix);
    return over.length > 0;
  });
  const strange = paths.find((path) => !met.has(path));
  if (strange === undefined) return { changes: chosen };
  return refusal(
    "invalid_request",
    `paths: no change is held at ${quoted(Buffer.from(strange, "latin1").toString("utf8"))} or below it`,
    "GET /v1/diff lists what is still held",
  );
}

/** Returns the path and its parent folders of the given lengths only, because folders may be nested thousands deep. */
function prefixesOf(path: string, lengths: readonly number[]): readonly string[] {
  return lengths
    .filter((length) => length === path.length || path[length] === "/")
    .map((length) => path.slice(0, length));
}
