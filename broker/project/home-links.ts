/**
 * Files of a project that something outside runs or loads by itself because a link leads to them (`~/.bashrc -> dotfiles/bashrc`), or
 * because a PATH leads there. Their names say nothing of it, so no table of names lists them (world/overlay/run-later.ts).
 */
import { statSync } from "node:fs";
import { join, relative } from "node:path";
import type { FsDiff } from "../../schemas/generated/types.ts";
import { isWithin } from "../model/folders.ts";
import { linksIn, wayTo } from "./link-ways.ts";
import type { ProgramFolders } from "./program-folders.ts";

/** Below the home: where shells, ssh, desktops and systemd look, and where most tools keep their settings. */
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

/** Thousands of links of a distribution's own packages: none leads into a person's project. */
const SYSTEM = /^(?:\/usr)?\/s?bin$/;

/** Of one folder; a home has some hundred. */
const MAX_NAMES = 4000;

/** As the listing of changes itself (world/overlay/diff.ts). */
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

  /** The changes with such files among `autorun`. */
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

  /** From the project; the project itself is the empty path. A link to what holds the project says nothing of it. */
  #in(project: string): readonly string[] {
    const programs = this.#programs.all().filter((folder) => !SYSTEM.test(folder));
    const settings = SETTINGS.map((name) => join(this.#home, name));
    const folders = [...new Set([...settings, ...programs])];
    const identity = [this.#home, ...folders].map(lookOf).join("\n");
    if (identity !== this.#identity) {
      // Only names with a dot: `~/projects -> /data/projects` starts nothing.
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
