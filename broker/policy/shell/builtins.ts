import type { ReadCommand, SimpleCommand } from "../words/command.ts";

/** Shell builtins that change state for later commands: working directory, variables, meaning of words. */
const STATE_CHANGING: ReadonlySet<string> = new Set([
  ...["cd", "pushd", "popd", "dirs"],
  ...[
    "export",
    "unset",
    "readonly",
    "declare",
    "typeset",
    "local",
    "read",
    "getopts",
    "mapfile",
    "readarray",
  ],
  ...["source", ".", "eval", "exec", "trap"],
  ...["alias", "unalias", "hash", "enable", "set", "shopt", "shift"],
  ...["umask", "ulimit"],
]);

/** Run a builtin by name in the same shell. */
const PREFIXES: ReadonlySet<string> = new Set(["command", "builtin"]);

/** Most trace lines for the builtins of a command: a script of 2,000 builtins must not become 2,000 lines. */
const MAX_TOLD = 16;

/**
 * When a builtin certainly ran. `started`: the line began at all. `ended`: the shell ended by itself. `succeeded`: the whole line
 * exited with 0.
 */
export type Certainty = "started" | "ended" | "succeeded";

export interface Builtin {
  /** Source text of the command. */
  readonly fragment: string;
  /** Undefined: the line's exit code does not tell. */
  readonly ran: Certainty | undefined;
  /**
   * Behind `&&` and after nothing fallible but `cd`: the builtin ran as well if `ran` holds and the targets in `folders`, in
   * order, are folders. The caller looks at the disk.
   */
  readonly behind?: { readonly folders: readonly string[]; readonly ran: Certainty };
}

/** State-changing builtins of a command line's own shell, in order, except builtins that may or may not have run. */
export type Builtins = readonly Builtin[];

const NONE: Builtins = [];

/**
 * Finds the state-changing builtins of a line. The changes of an inner shell (`sh -c`) end with the inner shell, and a program
 * without a shell has no builtins.
 */
export function builtinsOf(read: ReadCommand): Builtins {
  if (read.form === "argv" || read.incomplete) return NONE;
  const found = new Map<string, Builtin>();
  let ran: Certainty | undefined = "started";
  let succeeds = true;
  for (const command of read.fragments) {
    const { reach = "always", fragment, moves } = command;
    const inChain = reach === "chain" || reach === "success";
    const line = leastOf(ran, "ended");
    const certain = leastOf(ran, reachedBy(command));
    const behind =
      inChain && succeeds && moves !== null && line !== undefined
        ? { behind: { folders: moves, ran: line } }
        : undefined;
    // Two readings of a text are a single command.
    if (isOwnBuiltin(command) && (certain !== undefined || behind !== undefined))
      found.set(`${command.start}:${command.end}`, { fragment, ran: certain, ...behind });
    ran = leastOf(ran, goesOnAfter(command));
    succeeds = (inChain ? succeeds : true) && isSureToSucceed(command);
  }
  return found.size === 0 ? NONE : [...found.values()];
}

/** Selects the builtins that ran: the first have a trace line each, the rest are counted. */
export function toldBuiltins(
  builtins: Builtins,
  ended: ReadonlySet<Certainty>,
  isFolder: (moves: readonly string[]) => boolean,
): { readonly fragments: readonly string[]; readonly more: number } {
  const isCertain = ({ ran: certainty, behind }: Builtin): boolean =>
    (certainty !== undefined && ended.has(certainty)) ||
    (behind !== undefined && ended.has(behind.ran) && isFolder(behind.folders));
  const ran = builtins.filter(isCertain).map(({ fragment }) => fragment);
  return { fragments: ran.slice(0, MAX_TOLD), more: Math.max(ran.length - MAX_TOLD, 0) };
}

/** Fail in no shell if all words are known; `cd` also needs its folder. */
const SURE: ReadonlySet<string> = new Set([
  ...["true", ":", "export", "unset", "umask", "alias", "unalias", "trap", "cd"],
]);

function isSureToSucceed({ words, redirects, inside, depth }: SimpleCommand): boolean {
  const [program, first] = words;
  if (depth > 0 || inside.length > 0 || redirects.length > 0 || program === undefined) return false;
  if (!SURE.has(program.text) || words.some(({ kind }) => kind !== "literal")) return false;
  return program.text !== "cd" || (words.length === 2 && first !== undefined && !first.text.startsWith("-"));
}

function reachedBy({ reach = "always" }: SimpleCommand): Certainty | undefined {
  if (reach === "always" || reach === "last") return "started";
  return reach === "success" ? "succeeded" : undefined;
}

const ORDER: readonly Certainty[] = ["started", "ended", "succeeded"];

/** Returns the stronger condition of two; undefined if either is unknown. */
function leastOf(one: Certainty | undefined, other: Certainty | undefined): Certainty | undefined {
  if (one === undefined || other === undefined) return undefined;
  return ORDER[Math.max(ORDER.indexOf(one), ORDER.indexOf(other))];
}

/** Builtins that end the shell on failure (POSIX, XCU 2.8.1), or make later failures end the shell. */
const MAY_FAIL_THE_SHELL: ReadonlySet<string> = new Set([
  ".",
  "source",
  "eval",
  "set",
  "shopt",
  "shift",
  "return",
]);

/** Spelled as in `inside`. */
const OWN_SHELLS: ReadonlySet<string> = new Set(["( )", "$( )", "<( )", "coproc"]);

/** Returns the condition under which the line continued after this command; undefined if unknown. */
function goesOnAfter(command: SimpleCommand): Certainty | undefined {
  const { words, assignments, depth, inside, reach = "always" } = command;
  // An inner shell ends alone.
  if (depth > 0 || inside.some((each) => OWN_SHELLS.has(each))) return "started";
  const [first, second] = words;
  const name = first?.kind === "literal" ? first.text : "";
  if (name === "exit" || name === "return") {
    const isFailure = second === undefined ? reach === "failure" : /^0*[1-9]\d*$/.test(second.text);
    return isFailure && reach !== "always" && reach !== "last" ? "succeeded" : undefined;
  }
  if (name === "trap" && words.some(({ text }) => /\bexit\b/.test(text))) return undefined;
  if (name === "exec" && second !== undefined) return undefined;
  if (MAY_FAIL_THE_SHELL.has(name)) return "succeeded";
  // `${x:?}` and `set -u` end the shell over a word.
  const isDynamic = [...words, ...assignments.map(({ value }) => value)].some(({ raw }) =>
    /\$\{[^}]*\?/.test(raw),
  );
  return isDynamic ? "succeeded" : "ended";
}

function isOwnBuiltin({ words, depth }: SimpleCommand): boolean {
  if (depth > 0) return false;
  const [first, second] = words;
  if (first?.kind !== "literal") return false;
  const name = PREFIXES.has(first.text) && second?.kind === "literal" ? second.text : first.text;
  return STATE_CHANGING.has(name);
}
