import type { FsDiff } from "../../schemas/generated/types.ts";
import { beyondBounds, MAX_FILES, MAX_FOLDERS, NO_CHANGES } from "../model/fs-diff.ts";
import { isAutorun } from "./autorun.ts";
import { shownPath } from "./names.ts";
import type { ChangeKind } from "./tree-hash.ts";

/** Collects changes for a reply or a span, within the bounds of a listing. Add them ordered by the bytes of their paths. */
export class Listing {
  readonly #paths = { write: [], mod: [], delete: [], dir: [] } as Record<ChangeKind, string[]>;
  readonly #autorun: string[] = [];
  readonly #counts = { write: 0, mod: 0, delete: 0, dir: 0 };

  get count(): number {
    return this.#files + this.#counts.dir;
  }

  get #files(): number {
    return this.#counts.write + this.#counts.mod + this.#counts.delete;
  }

  /** `path` has one letter per byte; `mode` is the present `st_mode`, 0 for a missing file. */
  add(kind: ChangeKind, path: string, mode: number): void {
    this.#counts[kind] += 1;
    if (kind === "dir") {
      if (this.#counts.dir <= MAX_FOLDERS) this.#paths.dir.push(shownPath(path));
      return;
    }
    if (this.#files <= MAX_FILES) this.#paths[kind].push(shownPath(path));
    // Check every path, even beyond the bounds: autorun files must not hide behind a thousand other changes.
    if (this.#autorun.length < MAX_FILES && isAutorun(path, mode)) this.#autorun.push(shownPath(path));
  }

  /** `gaps`: reasons for missing changes, as text. */
  diff(gaps: readonly string[] = []): FsDiff {
    const all = [...beyondBounds(this.#counts), ...gaps];
    const { write: writes, mod: mods, delete: deletes, dir: dirs } = this.#paths;
    return {
      ...NO_CHANGES,
      ...{ writes, mods, deletes, dirs, autorun: this.#autorun },
      truncated: all.length > 0,
      summary: all.length === 0 ? null : all.join("; "),
    };
  }
}
