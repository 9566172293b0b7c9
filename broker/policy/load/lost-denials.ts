/** Notes on built-in denials that a policy's own list of `fs` replaces: who denies one more file may not know that there were some. */
import type { PolicyDocument } from "../../../schemas/generated/types.ts";
import { DENIED_READS, DENIED_WRITES, pathsOf } from "../files/default-denials.ts";
import { fileLists } from "../files/file-lists.ts";
import { absolutePath, compiledDenials, isCovered } from "../files/path-denials.ts";

/** Any folders serve: rows and lists name both by variables. */
const FOLDERS = { project: "/home/me/project", home: "/home/me" };

const SHOWN = 4;

const LISTS = [
  ["deny_read", "read", DENIED_READS, "commands may read credentials and personal data"],
  ["deny_write", "write", DENIED_WRITES, "commands may write what git runs by itself"],
] as const;

export function lostDenials(document: PolicyDocument): readonly string[] {
  const lists = fileLists(document);
  return LISTS.flatMap(([list, opens, rows, effect]) => {
    if (document.fs?.[list] === undefined) return [];
    const denied = compiledDenials(lists[list], FOLDERS);
    const lost = pathsOf(rows).filter((row) => {
      // Modes keep an ordinary user's commands from the machine's own files: no user of an older list needs a note.
      if (row.startsWith("/")) return false;
      const path = absolutePath(row, FOLDERS);
      return isCovered(path, lists[opens], FOLDERS) && denied(path) === undefined;
    });
    if (lost.length === 0) return [];
    const more = lost.length > SHOWN ? ` and ${lost.length - SHOWN} more` : "";
    const names = `'${lost.slice(0, SHOWN).join("', '")}'${more}`;
    return [
      `fs.${list} replaces the built-in rows, so ${effect}: ${names}. Add them, or write 'extends: default', which keeps them`,
    ];
  });
}
