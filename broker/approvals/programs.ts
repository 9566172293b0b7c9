/** The programs and scripts that a command names, and what of them could be another thing by the time it runs. */
import { basename, isAbsolute, resolve } from "node:path";
import { HOME_MARK, type ReadCommand, type SimpleCommand } from "../policy/index.ts";
import { isWithin } from "../projects.ts";
import { contentOf, isSeenAlike, lookAt } from "./host-file.ts";

/** Where a command looks for programs, and what its agent may write. */
export type Surroundings = {
  readonly cwd: string;
  readonly project: string;
  readonly home: string;
  /** The PATH it runs with. */
  readonly path: string;
  /** A path, or `path/**`. */
  readonly writable: readonly string[];
};

/** A program as it is now. `identity` is the hash of its content where the agent could write another one. */
export type NamedProgram = {
  readonly path: string;
  readonly identity: string;
  readonly replaceable: boolean;
};

export type NamedPrograms = {
  readonly programs: readonly NamedProgram[];
  /** Why what runs cannot be told from what is written; none when it can. */
  readonly unknown: readonly string[];
};

/** These run what their arguments name. */
const INTERPRETERS = new Set(
  "sh bash dash ash zsh ksh fish python pypy node nodejs deno bun tsx ts-node perl ruby php lua luajit Rscript tclsh awk gawk mawk make gmake source .".split(
    " ",
  ),
);

/** Bytes of content that are hashed for one command; beyond, a file is known by its inode and times. */
const MAX_HASHED = 8 * 1024 * 1024;

const MAX_PROGRAMS = 256;

/** What a command names as it is read; looks at the files that could be replaced. */
export function namedPrograms(read: ReadCommand, around: Surroundings): NamedPrograms {
  const found = read.fragments.flatMap((command) => wordsToRun(command, around));
  const paths = [...new Set(found.flatMap(({ path }) => path ?? []))];
  const unknown = [
    ...found.flatMap(({ unknown: why }) => why ?? []),
    ...read.opaque.map(({ reason }) => reason),
    ...(read.incomplete ? ["The command could not be read to its end"] : []),
    ...(paths.length > MAX_PROGRAMS ? [`It names more than ${MAX_PROGRAMS} programs`] : []),
  ];
  const budget = { bytes: MAX_HASHED };
  const programs = paths.slice(0, MAX_PROGRAMS).map((path) => identified(path, around, budget));
  return { programs, unknown: [...new Set(unknown)] };
}

/** A path to be looked at, or why there is none. */
type Found = { readonly path?: string; readonly unknown?: string };

function wordsToRun(command: SimpleCommand, around: Surroundings): readonly Found[] {
  const [program, ...rest] = command.words;
  const changed = changesPath(command) ? [{ unknown: "It changes PATH, where programs are looked for" }] : [];
  if (program === undefined || program.kind !== "literal") return changed;
  const own = program.text.includes("/")
    ? fileNamed(program.text, command, around, true)
    : lookedUp(program.text, around);
  if (!INTERPRETERS.has(basename(program.text).replace(/[0-9.]+$/, "") || ".")) return [...changed, ...own];
  const input = command.redirects.flatMap(({ operator, target }) => (operator === "<" ? (target ?? []) : []));
  const scripts = [...rest, ...input]
    .filter(({ kind, text }) => kind === "literal" && text !== "" && !text.startsWith("-"))
    .flatMap(({ text }) => fileNamed(text, command, around, false));
  return [...changed, ...own, ...scripts];
}

function changesPath({ assignments, words }: SimpleCommand): boolean {
  return (
    assignments.some(({ name }) => name === "PATH") || words.some(({ text }) => text.startsWith("PATH="))
  );
}

/** A word that is a path. One that names no file counts only where a program must be. */
function fileNamed(
  text: string,
  { moves }: SimpleCommand,
  { cwd, home, project }: Surroundings,
  needed: boolean,
): readonly Found[] {
  const word = text.replace(HOME_MARK, home);
  if (word.includes("\0")) return [];
  if (!isAbsolute(word) && moves === null) {
    return needed ? [{ unknown: `It cannot be known in which folder '${text}' is` }] : [];
  }
  // A shell shortens `..` where it goes, and the kernel follows links first in what it opens.
  const folder = resolve(cwd, ...(moves ?? []).map((move) => move.replace(HOME_MARK, home)));
  const path = isAbsolute(word) ? word : `${folder}/${word}`;
  const { kind } = lookAt(path, project);
  if (kind === "hidden") return [{ unknown: `Only its world can see '${text}'` }];
  return needed || kind === "file" ? [{ path }] : [];
}

/** The file that a bare name is, by the PATH that the command runs with. */
function lookedUp(name: string, { path, cwd, project }: Surroundings): readonly Found[] {
  for (const part of path.split(":")) {
    const folder = isAbsolute(part) ? part : `${cwd}/${part}`;
    if (!isSeenAlike(folder, project)) return [{ unknown: `Only its world can see '${part}' in its PATH` }];
    const file = lookAt(`${folder}/${name}`, project);
    if (file.kind === "hidden") return [{ unknown: `Only its world can see where '${name}' leads` }];
    if (file.kind === "file") return [{ path: `${folder}/${name}` }];
  }
  return [{ path: name }];
}

function identified(path: string, around: Surroundings, budget: { bytes: number }): NamedProgram {
  const file = isAbsolute(path) ? lookAt(path, around.project) : { kind: "missing" as const };
  if (file.kind !== "file") return { path, identity: "missing", replaceable: isReplaceable(path, around) };
  const { real } = file;
  if (![path, real].some((one) => isReplaceable(one, around)))
    return { path, identity: `at ${real}`, replaceable: false };
  return { path, identity: `${contentOf(real, budget)} at ${real}`, replaceable: true };
}

/** Where the agent may write, or on a way that cannot be told by its letters. */
function isReplaceable(path: string, { project, writable }: Surroundings): boolean {
  if (path.split("/").includes("..")) return true;
  return [`${project}/**`, ...writable].some(
    (scope) => scope === path || (scope.endsWith("/**") && isWithin(path, scope.slice(0, -3) || "/")),
  );
}
