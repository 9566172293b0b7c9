/** Plans the steps that put selected changes into the project. Pure: tests read the steps as data. */
import type { Step } from "./held-journal.ts";
import { type Entry, FLAG, has, parentOf, ROW } from "./rows.ts";
import type { State } from "./held-state.ts";

type Work = {
  readonly state: State;
  readonly chosen: ReadonlySet<string>;
  readonly below: ReadonlyMap<string, readonly Entry[]>;
  /** Folders with changes below that were not selected. */
  readonly partial: ReadonlySet<string>;
  /** Paths put into the project by an earlier apply, and the folders above. */
  readonly begun: ReadonlySet<string>;
  readonly steps: Step[];
};

/** Returns the steps. Existing folders get the command's times only together with new content, never alone. */
export function stepsOf(state: State, chosen: ReadonlySet<string>): readonly Step[] {
  const below = new Map<string, Entry[]>();
  for (const entry of state.entries.values()) {
    if (entry.path === "") continue;
    const siblings = below.get(parentOf(entry.path));
    if (siblings === undefined) below.set(parentOf(entry.path), [entry]);
    else siblings.push(entry);
  }
  const partial = partialFolders(state, chosen);
  const begun = withAncestors(state.journal.applied.keys());
  const work: Work = { state, chosen, below, partial, begun, steps: [] };
  const root = state.entries.get("");
  if (root !== undefined) mergeFolder(work, root);
  return work.steps;
}

function partialFolders({ entries }: State, chosen: ReadonlySet<string>): ReadonlySet<string> {
  const left = [...entries.values()].filter(({ path, kind }) => kind !== null && !chosen.has(path));
  return withAncestors(left.map(({ path }) => path));
}

function withAncestors(paths: Iterable<string>): ReadonlySet<string> {
  const all = new Set<string>();
  for (const path of paths) for (let at = path; at !== "" && !all.has(at); at = parentOf(at)) all.add(at);
  return all;
}

/** Plans a folder that exists in the project. */
function mergeFolder(work: Work, folder: Entry): void {
  let direct = false;
  for (const entry of work.below.get(folder.path) ?? []) direct = placeEntry(work, entry) || direct;
  if (work.chosen.has(folder.path) && folder.kind === "mode") work.steps.push(attributes(folder, "whole"));
  else if (direct) work.steps.push(attributes(folder, "times"));
}

/** Plans an entry; returns whether the folder around it changes. */
function placeEntry(work: Work, entry: Entry): boolean {
  const { path, type, kind, above, below } = entry;
  const chosen = work.chosen.has(path);
  const stands = type === ROW.folder && kind !== "dir";
  if (stands && !isWhollyReplaced(work, entry)) {
    mergeFolder(work, entry);
    return false;
  }
  if (!chosen && !stands) return false;
  if (type === ROW.removed) {
    work.steps.push({ kind: "take", how: "whole", path, source: "", expect: below?.text ?? "" });
    return true;
  }
  // With hard links the file is replaced instead: only the changed name changes, and becomes a separate file.
  if (kind === "mode" && type === ROW.file && above?.links === 1 && below?.links === 1) {
    work.steps.push(attributes(entry, "whole"));
    return false;
  }
  const alone = type === ROW.folder && work.partial.has(path);
  work.steps.push({
    kind: "put",
    how: alone ? "alone" : "whole",
    path,
    source: sourceOf(path),
    expect: below?.text ?? "",
  });
  if (alone) fillFolder(work, path);
  return true;
}

/**
 * Whether one exchange of folders replaces an exchange per file: the upper folder hides the lower one, and every change below is
 * selected. Not after an earlier apply below: its content would leave with the lower folder, and return when both are undone.
 */
function isWhollyReplaced({ below, partial, begun, state }: Work, entry: Entry): boolean {
  if (!has(entry, FLAG.opaque) || partial.has(entry.path) || begun.has(entry.path)) return false;
  const touched = (below.get(entry.path) ?? []).some(
    ({ path, kind }) => kind !== null && state.open.has(path),
  );
  return touched && entry.refusal === "" && entry.below?.type === ROW.folder;
}

function fillFolder(work: Work, folder: string): void {
  for (const { path, type, kind } of work.below.get(folder) ?? []) {
    if (!work.chosen.has(path) && !(type === ROW.folder && kind === null)) continue;
    const alone = type === ROW.folder && work.partial.has(path);
    work.steps.push({
      kind: "into",
      how: alone ? "alone" : "whole",
      path,
      source: sourceOf(path),
      expect: "",
    });
    if (alone) fillFolder(work, path);
  }
}

function attributes({ path, below }: Entry, how: "whole" | "times"): Step {
  // Setting a folder's times accepts any ctime: somebody else may have added names to the folder meanwhile.
  const expect = how === "times" ? anyTime(below?.text ?? "") : (below?.text ?? "");
  return { kind: "attributes", how, path, source: sourceOf(path), expect };
}

/** Replaces the ctime in the text of a sight by 0, which matches any ctime. */
export function anyTime(sight: string): string {
  const words = sight.split(" ");
  return [...words.slice(0, 5), "0", ...words.slice(6)].join(" ");
}

function sourceOf(path: string): string {
  return path === "" ? "upper" : `upper/${path}`;
}
