/** The programs and scripts that a command names, and what of them could be another thing by the time it runs. */
import { createHash } from "node:crypto";
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  realpathSync,
  statSync,
} from "node:fs";
import { basename, isAbsolute, join, resolve } from "node:path";
import type { ReadCommand, SimpleCommand } from "../policy/index.ts";
import { HOME_MARK } from "../policy/index.ts";
import { isWithin } from "../projects.ts";

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

/** A world has its own of these: the host cannot see what lies there. */
const WORLDS_OWN = ["/tmp", "/var/tmp", "/run", "/dev/shm"];

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
    ...paths.filter((path) => isWorldsOwn(path, around)).map((path) => `Only its world can see '${path}'`),
    ...(paths.length > MAX_PROGRAMS ? [`It names more than ${MAX_PROGRAMS} programs`] : []),
  ];
  const budget = { bytes: MAX_HASHED };
  const programs = paths.slice(0, MAX_PROGRAMS).map((path) => identified(path, around, budget));
  return { programs, unknown: [...new Set(unknown)] };
}

type Found = { readonly path?: string; readonly unknown?: string };

function wordsToRun(command: SimpleCommand, around: Surroundings): readonly Found[] {
  const [program, ...rest] = command.words;
  const setsPath =
    command.assignments.some(({ name }) => name === "PATH") ||
    rest.some(({ text }) => text.startsWith("PATH="));
  const moved = setsPath ? [{ unknown: "It changes PATH, where programs are looked for" }] : [];
  if (program === undefined || program.kind !== "literal") return moved;
  const own = program.text.includes("/")
    ? fileNamed(program.text, command, around, true)
    : [lookedUp(program.text, around)];
  if (!INTERPRETERS.has(basename(program.text).replace(/[0-9.]+$/, "") || ".")) return [...moved, ...own];
  const input = command.redirects.flatMap(({ operator, target }) => (operator === "<" ? (target ?? []) : []));
  const scripts = [...rest, ...input]
    .filter(({ kind, text }) => kind === "literal" && text !== "" && !text.startsWith("-"))
    .flatMap(({ text }) => fileNamed(text, command, around, false));
  return [...moved, ...own, ...scripts];
}

/** A word that is a path. One that names no file counts only where a program must be. */
function fileNamed(
  text: string,
  { moves }: SimpleCommand,
  { cwd, home }: Surroundings,
  needed: boolean,
): readonly Found[] {
  const path = text.replace(HOME_MARK, home);
  if (path.includes("\0")) return [];
  if (!isAbsolute(path) && moves === null) {
    return needed ? [{ unknown: `It cannot be known in which folder '${text}' is` }] : [];
  }
  const full = resolve(cwd, ...(moves ?? []).map((move) => move.replace(HOME_MARK, home)), path);
  const counts = needed || WORLDS_OWN.some((folder) => isWithin(full, folder)) || isFile(full);
  return counts ? [{ path: full }] : [];
}

/** The file that a bare name is, by the PATH that the command runs with. */
function lookedUp(name: string, { path, cwd }: Surroundings): Found {
  const folders = path.split(":").map((folder) => resolve(cwd, folder === "" ? "." : folder));
  const found = folders.map((folder) => join(folder, name)).find(isFile);
  return { path: found ?? name };
}

function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  } catch {
    // Names too long, loops of links and closed folders are no program, ignoring which.
    return false;
  }
}

function isWorldsOwn(path: string, { project }: Surroundings): boolean {
  return !isWithin(path, project) && WORLDS_OWN.some((folder) => isWithin(path, folder));
}

function identified(path: string, around: Surroundings, budget: { bytes: number }): NamedProgram {
  const real = realOf(path);
  if (real === undefined) return { path, identity: "missing", replaceable: isReplaceable(path, around) };
  if (![path, real].some((one) => isReplaceable(one, around)))
    return { path, identity: `at ${real}`, replaceable: false };
  return { path, identity: `${contentOf(real, budget)} at ${real}`, replaceable: true };
}

function isReplaceable(path: string, { project, writable }: Surroundings): boolean {
  return [`${project}/**`, ...writable].some(
    (scope) => scope === path || (scope.endsWith("/**") && isWithin(path, scope.slice(0, -3) || "/")),
  );
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    // Missing, or not to be reached: the same to whoever runs it.
    return undefined;
  }
}

/** `sha256:…`; of what is too long or cannot be read, what the kernel says of it, which no writer can set back. */
function contentOf(path: string, budget: { bytes: number }): string {
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch {
    // Not ours to read, ignoring: its inode and times tell it apart as well.
    return inodeOf(statSync(path, { bigint: true, throwIfNoEntry: false }));
  }
  try {
    const stat = fstatSync(file, { bigint: true });
    if (!stat.isFile() || stat.size > BigInt(budget.bytes)) return inodeOf(stat);
    return hashOf(file, budget) ?? inodeOf(stat);
  } finally {
    closeSync(file);
  }
}

function inodeOf(stat: BigIntStats | undefined): string {
  if (stat === undefined) return "missing";
  return `inode:${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
}

function hashOf(file: number, budget: { bytes: number }): string | undefined {
  const hash = createHash("sha256");
  const part = Buffer.alloc(256 * 1024);
  for (;;) {
    const length = readSync(file, part, 0, part.length, null);
    if (length === 0) return `sha256:${hash.digest("hex")}`;
    budget.bytes -= length;
    if (budget.bytes < 0) return undefined;
    hash.update(part.subarray(0, length));
  }
}
