import type { ReadCommand, SimpleCommand } from "./command.ts";

/** Commands of the shell itself that change what later commands of it do: where they run, what they see and mean. */
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

/** These run a builtin by its name in the same shell. */
const PREFIXES: ReadonlySet<string> = new Set(["command", "builtin"]);

/** A line of the trace for each: a script of 2,000 of them must not become 2,000 lines. */
const MAX_TOLD = 16;

/** The state-changing builtins of a command line's own shell, in order. */
export interface Builtins {
  /** As they were written. */
  readonly fragments: readonly string[];
  /** How many there are beyond these. */
  readonly more: number;
}

const NONE: Builtins = { fragments: [], more: 0 };

/** What a shell inside the command (`sh -c`) changes is gone with it, and a program without a shell has no builtins. */
export function builtinsOf(read: ReadCommand): Builtins {
  if (read.form === "argv") return NONE;
  const found = new Map<string, string>();
  for (const command of read.fragments) {
    // Two readings of one text are one command.
    if (isOwnBuiltin(command)) found.set(`${command.start}:${command.end}`, command.fragment);
  }
  if (found.size === 0) return NONE;
  const fragments = [...found.values()];
  return { fragments: fragments.slice(0, MAX_TOLD), more: Math.max(fragments.length - MAX_TOLD, 0) };
}

function isOwnBuiltin({ words, depth }: SimpleCommand): boolean {
  if (depth > 0) return false;
  const [first, second] = words;
  if (first?.kind !== "literal") return false;
  const name = PREFIXES.has(first.text) && second?.kind === "literal" ? second.text : first.text;
  return STATE_CHANGING.has(name);
}
