/**
 * Project files that outside programs run or load because a link refers to them (`~/.bashrc -> dotfiles/bashrc`), or because a
 * PATH contains their folder. Their names look ordinary, so no table lists them (world/overlay/run-later.ts).
 */
import { statSync } from "node:fs";
import { join, relative } from "node:path";
import type { FsDiff } from "../../schemas/generated/types.ts";
import { isWithin } from "../model/folders.ts";
import { linksIn, wayTo } from "./link-ways.ts";
import type { ProgramFolders } from "./program-folders.ts";

/** Below the home: the folders read by shells, ssh, desktops and systemd, and the settings of most tools. */
const SETTINGS = [
  ".config",
  ".config/autostart",
  ".config/fish",
  ".config/fish/conf.d",
  ".config/systemd/user",
  ".local/bin",
  ".ssh",
  "bin",
] as const;

/** Thousands of links from a distribution's packages; none refers to a person's project. */
const SYSTEM = /^(?:\/usr)?\/s?bin$/;

/** Bound on names per folder; a home has some hundred. */
const MAX_NAMES = 4000;

/** The same bound as for listed changes (world/overlay/diff.ts). */
const MAX_LISTED = 1000;

export class HomeLinks {
  readonly #home: string;
  readonly #programs: Pick<ProgramFolders, "all">;
  #identity = "";
  #places: readonly string[] = [];

  constructor(home: string, programs: Pick<ProgramFolders, "all">) {
    this.#home = home;
    this.#programs = programs;
  }

  /** Adds such files to the changes' `autorun`. */
  told(changes: FsDiff, project: string): FsDiff {
    const { writes, mods, deletes, autorun } = changes;
    const changed = [...writes, ...mods, ...deletes];
    if (changed.length === 0) return changes;
    const places = this.#in(project);
    if (places.length === 0) return changes;
    const known = new Set(autorun);
    const linked = changed.filter(
      (path) => !known.has(path) && places.some((place) => place === "" || isWithin(path, place)),
    );
    if (linked.length === 0) return changes;
    return { ...changes, autorun: [...autorun, ...linked].sort().slice(0, MAX_LISTED) };
  }

  /**
   * Returns such files relative to the project; the project itself is the empty path. Links to a folder above the project are
   * ignored.
   */
  #in(project: string): readonly string[] {
    const programs = this.#programs.all().filter((folder) => !SYSTEM.test(folder));
    const settings = SETTINGS.map((name) => join(this.#home, name));
    const folders = [...new Set([...settings, ...programs])];
    const identity = [this.#home, ...folders].map(lookOf).join("\n");
    if (identity !== this.#identity) {
      // Only names with a dot: `~/projects -> /data/projects` starts no program.
      const own = linksIn(this.#home, MAX_NAMES).filter((name) => name.startsWith("."));
      const links = [
        ...own.map((name) => join(this.#home, name)),
        ...folders.flatMap((folder) => linksIn(folder, MAX_NAMES).map((name) => join(folder, name))),
      ];
      this.#places = [...new Set([...links.flatMap(wayTo), ...programs])];
      this.#identity = identity;
    }
    return this.#places.filter((place) => isWithin(place, project)).map((place) => relative(project, place));
  }
}

function lookOf(folder: string): string {
  try {
    const stat = statSync(folder, { throwIfNoEntry: false });
    return stat === undefined ? "missing" : `${folder}:${stat.dev}:${stat.ino}:${stat.mtimeMs}`;
  } catch {
    return "closed";
  }
}
