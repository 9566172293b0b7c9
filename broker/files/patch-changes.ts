/** Reads a patch, a unified diff or `*** Begin Patch`, as changes of files. Pure. */
import { parsePatch } from "diff";
import { FILE_LIMITS, type FileChange, type FileEdit } from "../../world/backend.ts";
import { quoted, type Refusal, refusal } from "../model/refusal.ts";

const HINT =
  "Send a unified diff (---, +++, @@ lines), or '*** Begin Patch' with '*** Add File:', '*** Update File:' and '*** Delete File:' parts";

/** Git's mode of a plain file. Others are links, submodules, or programs, and a file made without its mode is another file. */
const REGULAR = "100644";

/** A mistake in a patch, with a sentence for the caller. */
class BadPatch extends Error {}

/** Returns the changes of a patch, or why it is none. */
export function patchChanges(patch: string): readonly FileChange[] | Refusal {
  try {
    const changes = /^\s*\*\*\* Begin Patch/.test(patch) ? begunPatch(patch) : unifiedDiff(patch);
    const edits = changes.reduce((sum, change) => sum + ("edits" in change ? change.edits.length : 0), 0);
    if (changes.length === 0) throw new BadPatch("it changes no file");
    if (changes.length > FILE_LIMITS.changes || edits > FILE_LIMITS.edits)
      throw new BadPatch(
        `it has ${changes.length} files and ${edits} hunks, and at most ${FILE_LIMITS.changes} and ${FILE_LIMITS.edits} are taken`,
      );
    if (changes.some(({ path }) => path === "" || path.includes("\0")))
      throw new BadPatch("a path is empty or holds NUL");
    return changes;
  } catch (error) {
    // The package throws plain errors, for which the patch is to blame too.
    const why = error instanceof Error ? error.message : String(error);
    return refusal("invalid_request", `patch: cannot be read: ${why}`, HINT, { path: "patch" });
  }
}

/** Lines of git about content that a diff does not hold. A hunk's own lines begin with a blank, a plus or a minus. */
const BINARY = /^(?:GIT binary patch$|Binary files )/m;

function unifiedDiff(patch: string): readonly FileChange[] {
  if (BINARY.test(patch)) throw new BadPatch("it changes a binary file: write that with a command");
  return parsePatch(patch).map((file) => {
    const { oldFileName: old = "", newFileName: name = "", hunks } = file;
    const gitNames = [
      [old, "a/"],
      [name, "b/"],
    ].every(([path = "", prefix = ""]) => path === "/dev/null" || path.startsWith(prefix));
    const [from, to] = [old, name].map((path) =>
      gitNames && path !== "/dev/null" ? path.slice(2) : path,
    ) as [string, string];
    const { newMode: mode } = file;
    if (mode !== undefined && !(file.isCreate === true && mode === REGULAR))
      throw new BadPatch(
        `it gives ${quoted(to)} the mode ${mode}: leave it out, and use a command (chmod, ln)`,
      );
    if (hunks.some(({ oldStart }) => !Number.isSafeInteger(oldStart)))
      throw new BadPatch(`a hunk of ${quoted(to)} begins at no line of a file`);
    if (old === "/dev/null" || file.isCreate === true)
      return {
        kind: "create",
        path: to,
        content: Buffer.from(hunks.map((hunk) => sides(hunk.lines)[1]).join("")),
      };
    const edits = hunks.map(({ lines, oldStart }): FileEdit => {
      const [before, after] = sides(lines);
      return { old: before, new: after, line: oldStart, hunk: true };
    });
    // Without a hunk, the file that git removes is empty.
    if (name === "/dev/null" || file.isDelete === true)
      return { kind: "remove", path: from, edits: edits.length === 0 ? [EMPTY] : edits };
    if (from !== to)
      throw new BadPatch(`it renames ${quoted(from)} to ${quoted(to)}: rename with a command, then patch`);
    if (edits.length === 0) throw new BadPatch(`it has no hunk for ${quoted(from)}`);
    return { kind: "edit", path: from, edits };
  });
}

const EMPTY: FileEdit = { old: "", new: "", line: 1, hunk: true };

/** The text before and after a hunk. */
function sides(lines: readonly string[]): readonly [before: string, after: string] {
  let [before, after] = ["", ""];
  lines.forEach((line, at) => {
    const text = `${line.slice(1)}${lines[at + 1]?.startsWith("\\") === true ? "" : "\n"}`;
    if (line.startsWith("\\")) return;
    if (!line.startsWith("+")) before += text;
    if (!line.startsWith("-")) after += text;
  });
  return [before, after];
}

const PART = /^\*\*\* (Add|Update|Delete) File: (.+)$/;

function begunPatch(patch: string): readonly FileChange[] {
  const lines = patch.trim().split(/\r?\n/);
  if (lines.at(-1)?.trim() !== "*** End Patch") throw new BadPatch("'*** End Patch' is missing");
  const changes: FileChange[] = [];
  for (let at = 1; at < lines.length - 1; ) {
    const [, kind, path = ""] = PART.exec(lines[at] ?? "") ?? [];
    if (kind === undefined) throw new BadPatch(`line ${at + 1} begins no file: ${quoted(lines[at])}`);
    // Each part copies the rest.
    if (changes.length === FILE_LIMITS.changes)
      throw new BadPatch(`it has more than ${FILE_LIMITS.changes} files`);
    const rest = lines.slice(at + 1, -1);
    const length = rest.findIndex((line) => PART.test(line));
    const body = length === -1 ? rest : rest.slice(0, length);
    changes.push(begunChange(kind, path.trim(), body));
    at += 1 + body.length;
  }
  return changes;
}

function begunChange(kind: string, path: string, body: readonly string[]): FileChange {
  if (kind === "Delete") return { kind: "remove", path, edits: [] };
  if (kind === "Add") {
    const odd = body.find((line) => !line.startsWith("+"));
    if (odd !== undefined)
      throw new BadPatch(`a line of the new file ${quoted(path)} has no '+': ${quoted(odd)}`);
    return { kind: "create", path, content: Buffer.from(body.map((line) => `${line.slice(1)}\n`).join("")) };
  }
  if (body.some((line) => line.startsWith("*** Move to:")))
    throw new BadPatch(`it renames ${quoted(path)}: rename with a command, then patch`);
  const edits = begunEdits(path, body);
  if (edits.length === 0) throw new BadPatch(`it has no change for ${quoted(path)}`);
  return { kind: "edit", path, edits };
}

/** `@@ LINE` leads to a line, and the lines below it are the first that stand behind it. */
function begunEdits(path: string, body: readonly string[]): readonly FileEdit[] {
  const edits: FileEdit[] = [];
  let lines: string[] = [];
  let led = false;
  const end = (): void => {
    if (lines.length === 0) return;
    const [before, after] = sides(lines);
    if (before === "") throw new BadPatch(`a change of ${quoted(path)} has no line to stand beside`);
    if (before !== after) edits.push({ old: before, new: after, hunk: true, first: led });
    lines = [];
  };
  for (const line of body) {
    if (line === "*** End of File") continue;
    if (line.startsWith("@@")) {
      end();
      const anchor = line.slice(2).replace(/^ /, "");
      led = anchor !== "";
      if (led) edits.push({ old: `${anchor}\n`, new: `${anchor}\n`, hunk: true, first: true });
    } else if (line === "" || /^[ +-]/.test(line)) lines.push(line === "" ? " " : line);
    else
      throw new BadPatch(
        `a line of ${quoted(path)} begins with none of ' ', '+', '-', '@@': ${quoted(line)}`,
      );
  }
  end();
  return edits;
}
