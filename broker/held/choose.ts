/** Which of the held changes a call names. Pure. */
import type { HeldChange } from "../../world/backend.ts";
import { quoted, type Refusal, refusal } from "../model/refusal.ts";
import { bytesOfChangePath } from "./change-path.ts";

/** Byte paths of what the caller named, normal and relative; null when it named nothing, which is everything. */
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
        "Copy the path from the diff; a folder stands for everything below it",
      );
    named.push(names.join("/"));
  }
  return [...new Set(named)];
}

/** The changes at or below the named byte paths; a name that holds none is refused. */
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
    `paths: nothing is held at ${quoted(Buffer.from(strange, "latin1").toString("utf8"))} or below it`,
    "Look at GET /v1/diff for what is held still",
  );
}

/** Of the path and the folders above it those that are as long: folders may lie in each other by the thousand. */
function prefixesOf(path: string, lengths: readonly number[]): readonly string[] {
  return lengths
    .filter((length) => length === path.length || path[length] === "/")
    .map((length) => path.slice(0, length));
}
