/** The shims folder, first on PATH: for each name a link to the shim's program. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  statSync,
  symlinkSync,
  unlinkSync,
} from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { DEFAULT_NAMES } from "./default-names.ts";

/** A name in the shims folder. `real`: the program behind the shim, null if not on PATH. */
export type ShimState = {
  readonly name: string;
  readonly state:
    | "in force"
    | "not first on PATH"
    | "nothing behind it"
    | "of another installation"
    | "no shim";
  readonly real: string | null;
};

export type ShimChange = {
  readonly done: readonly string[];
  /** Names already in the wanted state. */
  readonly same: readonly string[];
  readonly refused: readonly { readonly name: string; readonly why: string }[];
};

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.+-]{0,127}$/;

/** Names without a shim: a denying shim for these would keep the broker itself from starting. */
const OURS = ["substrate", "node"];

export class ShimFolder {
  readonly path: string;
  readonly #program: string;
  readonly #folders: readonly string[];
  readonly #uid: number;

  /** @param program target of the links. @param search the caller's PATH. @param uid the caller's user. */
  constructor(path: string, program: string, search: string, uid: number) {
    this.path = path;
    this.#uid = uid;
    this.#program = program;
    this.#folders = search.split(delimiter).filter((folder) => folder !== "");
  }

  /**
   * Links the names, by default the installed programs of {@link DEFAULT_NAMES}. Never replaces a file that is not a shim.
   * Throws if other users can write to the folder, because the folder is first on PATH.
   */
  install(names: readonly string[]): ShimChange {
    mkdirSync(this.path, { recursive: true, mode: 0o700 });
    for (const folder of [this.path, dirname(this.path)]) refuseShared(folder, this.#uid);
    const wanted = names.length > 0 ? names : DEFAULT_NAMES.filter((name) => this.#behind(name) !== null);
    return this.#each(wanted, (name) => {
      if (OURS.includes(name)) return `'${name}' starts Substrate itself`;
      if (this.#behind(name) === null) return "PATH has no program of this name";
      const leads = this.#leadsTo(name);
      if (leads === this.#program) return "same";
      if (leads === undefined && this.#exists(name)) return "the shims folder has another file of this name";
      if (leads !== undefined) unlinkSync(join(this.path, name));
      symlinkSync(this.#program, join(this.path, name));
      return "done";
    });
  }

  /** Removes the shims of the names, by default all shims. */
  remove(names: readonly string[]): ShimChange {
    const wanted =
      names.length > 0 ? names : this.#names().filter((name) => this.#leadsTo(name) !== undefined);
    return this.#each(wanted, (name) => {
      if (!this.#exists(name)) return "same";
      if (this.#leadsTo(name) === undefined) return "this file is not a shim";
      unlinkSync(join(this.path, name));
      return "done";
    });
  }

  status(names: readonly string[]): readonly ShimState[] {
    const wanted = names.length > 0 ? names : this.#names();
    return wanted.map((name) => ({ name, state: this.#stateOf(name), real: this.#behind(name) }));
  }

  #stateOf(name: string): ShimState["state"] {
    const leads = this.#leadsTo(name);
    if (leads === undefined) return "no shim";
    if (leads !== this.#program) return "of another installation";
    if (this.#behind(name) === null) return "nothing behind it";
    const first = this.#folders.find((folder) => isProgram(join(folder, name)));
    return first !== undefined && isSame(first, this.path) ? "in force" : "not first on PATH";
  }

  #each(names: readonly string[], change: (name: string) => string): ShimChange {
    const ends = [...new Set(names)].map((name) => ({
      name,
      end: NAME.test(name) ? change(name) : "give a program's name without a folder",
    }));
    const ended = (wanted: string): string[] =>
      ends.flatMap(({ name, end }) => (end === wanted ? [name] : []));
    return {
      done: ended("done"),
      same: ended("same"),
      refused: ends.flatMap(({ name, end }) =>
        end === "done" || end === "same" ? [] : [{ name, why: end }],
      ),
    };
  }

  #names(): readonly string[] {
    if (!existsSync(this.path)) return [];
    return readdirSync(this.path)
      .filter((name) => NAME.test(name))
      .sort();
  }

  #exists(name: string): boolean {
    return lstatSync(join(this.path, name), { throwIfNoEntry: false }) !== undefined;
  }

  /** The link's target if a shim program, of this or another installation; else undefined. */
  #leadsTo(name: string): string | undefined {
    const path = join(this.path, name);
    if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return undefined;
    const target = readlinkSync(path);
    return target.endsWith("/substrate-shim") ? target : undefined;
  }

  /** The program behind a shim of the name: the first on PATH except shims (`shim/program.c`). */
  #behind(name: string): string | null {
    const shim = existsSync(this.#program) ? realpathSync(this.#program) : this.#program;
    const found = this.#folders
      .map((folder) => join(folder, name))
      .find((path) => isProgram(path) && realpathSync(path) !== shim);
    return found ?? null;
  }
}

/** Throws for a folder that another user owns or can write to: such a user chooses the programs behind the shims' names. */
function refuseShared(folder: string, uid: number): void {
  const stat = statSync(folder);
  if (stat.uid !== uid)
    throw new Error(`'${folder}' belongs to user ${stat.uid}; the shims would belong to user ${uid}`);
  if ((stat.mode & 0o022) === 0) return;
  const mode = (stat.mode & 0o7777).toString(8);
  throw new Error(`Other users can write to '${folder}' (mode ${mode}). Run: chmod go-w '${folder}'`);
}

function isProgram(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat?.isFile() === true && (stat.mode & 0o111) !== 0;
}

function isSame(one: string, other: string): boolean {
  const [a, b] = [one, other].map((path) => statSync(path, { throwIfNoEntry: false }));
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}
