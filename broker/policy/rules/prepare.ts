import { posix } from "node:path";
import { type Arguments, sortArguments } from "../programs/arguments.ts";
import type { CommandWord, SimpleCommand } from "../words/command.ts";
import type { Where } from "./decision.ts";
import { baseName } from "../words/inner.ts";
import { folderAfter, looksLikePath, normalPath, wholeFolder, withHome } from "../programs/paths.ts";
import type { ProgramFacts } from "../programs/program-facts.ts";
import { factsOf, plainName } from "../programs/programs.ts";
import { changesPrograms } from "./set-variables.ts";

/** A simple command prepared for matching against many rules. */
export interface PreparedCommand {
  readonly command: SimpleCommand;
  /** The program word as written. */
  readonly written: string;
  /** Every name by which a rule may know the program: as written, without a version, and resolved. */
  readonly names: readonly string[];
  /** Absolute path of the program, when the word has a slash or the resolver finds the program. */
  readonly path: string | null;
  /** The real path, links followed; null if unknown. */
  readonly real: string | null;
  readonly facts: ProgramFacts;
  readonly args: Arguments;
  readonly where: Where;
  readonly folder: string | null;
  /** A variable set for the command may make the program load other code: the variable is not listed as harmless. */
  readonly tampered: boolean;
  /** Cached spellings of each word. */
  readonly spellings: Map<CommandWord, Spellings>;
  /** Cached positions, by spelling, of words that may follow values of unknown options; filled on first use. */
  readonly places: Map<string, number[]>;
}

export interface Spellings {
  /** Compared by refusing rules: any spelling matches. */
  readonly any: readonly string[];
  /** Compared by allowing rules; null when unknown. */
  readonly only: string | null;
}

/**
 * Returns null without a known program word.
 *
 * @param tampered another part of the line sets a variable that may load code.
 */
export function prepare(command: SimpleCommand, where: Where, tampered = false): PreparedCommand | null {
  const [program, ...others] = command.words;
  if (program === undefined || program.kind !== "literal") return null;
  const written = withHome(program.text, where.home);
  const folder = folderAfter(where.cwd, where.home, command.moves);
  const found = programOf(written, folder, where);
  const name = baseName(written);
  const names = new Set([name, plainName(name), ...realNames(found)]);
  const facts = factsOf(plainName(name));
  return {
    command,
    written,
    names: [...names],
    path: found.path,
    real: found.real,
    facts,
    args: sortArguments(others, facts),
    where,
    folder,
    tampered: tampered || changesPrograms(command.assignments, where),
    spellings: new Map(),
    places: new Map(),
  };
}

interface Found {
  readonly path: string | null;
  readonly real: string | null;
}

function programOf(written: string, folder: string | null, where: Where): Found {
  const path = written.includes("/") ? absolutePath(written, folder) : written;
  const program = path === null ? null : (where.resolve?.(path) ?? null);
  if (!written.includes("/")) return program ?? { path: null, real: null };
  return { path, real: program?.real ?? null };
}

function absolutePath(written: string, folder: string | null): string | null {
  if (written.startsWith("/")) return posix.normalize(written);
  return folder === null ? null : posix.resolve(folder, written);
}

/** `/usr/local/bin/x` linked to `/usr/bin/sudo` is `sudo` as well. */
function realNames({ path, real }: Found): readonly string[] {
  const files = [path, real].filter((file) => file !== null).map(baseName);
  return files.filter((name) => !MULTIPLE.has(name)).flatMap((name) => [name, plainName(name)]);
}

/** Multi-call programs: act as another program by the name of the call, so the called name counts. */
export const MULTIPLE: ReadonlySet<string> = new Set([
  "busybox",
  "toybox",
  "coreutils",
  "snap",
  "rustup",
  "volta-shim",
]);

export function spellingsOf(word: CommandWord, prepared: PreparedCommand): Spellings {
  const known = prepared.spellings.get(word);
  if (known !== undefined) return known;
  const spellings = computeSpellings(word, prepared);
  prepared.spellings.set(word, spellings);
  return spellings;
}

function computeSpellings(word: CommandWord, prepared: PreparedCommand): Spellings {
  const text = withHome(word.text, prepared.where.home);
  const isPath = looksLikePath(text);
  const any = new Set([text]);
  if (isPath) for (const folder of [null, prepared.folder]) any.add(normalPath(text, folder));
  if (word.kind === "glob") {
    const whole = wholeFolder(text, prepared.folder);
    if (whole !== null) for (const folder of [null, prepared.folder]) any.add(normalPath(whole, folder));
  }
  if (word.kind !== "literal") return { any: [...any], only: null };
  const relativeUnknown = isPath && prepared.folder === null && !text.startsWith("/");
  return { any: [...any], only: relativeUnknown ? null : isPath ? normalPath(text, prepared.folder) : text };
}
