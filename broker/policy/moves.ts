import { type CommandWord, HOME_MARK, type SimpleCommand } from "./command.ts";
import type { Inner } from "./inner.ts";

const SAME_SHELL: ReadonlySet<string> = new Set(["command", "builtin", "eval"]);

/** Where the shell stands after these words, when they are a `cd`; null when that is not known. */
export function movesAfter(
  words: readonly CommandWord[],
  moves: readonly string[] | null,
): readonly string[] | null {
  const program = words[0]?.text;
  if (program === "popd") return null;
  if (program !== "cd" && program !== "pushd") return moves;
  const known = words.slice(1).filter((word) => word.vanishes !== true);
  const target = known.find((word) => !/^-./.test(word.text));
  if (target === undefined) return known.length < words.length - 1 ? null : [HOME_MARK];
  return target.text === "-" ? null : movedBy(moves, target);
}

/**
 * The same for the command at `index` and what it runs in the same shell: `command cd x`, `eval 'cd x'`. What an `eval`
 * runs in a subshell counts too: a folder further away is the stricter answer.
 */
export function movesAfterAll(
  commands: readonly SimpleCommand[],
  index: number,
  moves: readonly string[] | null,
): readonly string[] | null {
  const first = commands[index]?.words[0]?.text ?? "";
  if (!SAME_SHELL.has(first)) return movesAfter(commands[index]?.words ?? [], moves);
  return commands.slice(index + 1).reduce((moved, { words }) => movesAfter(words, moved), moves);
}

/** Where a wrapper such as `env -C` runs its command. */
export function movesTo(inner: Inner, moves: readonly string[] | null): readonly string[] | null {
  return inner.kind === "opaque" || inner.folder === undefined ? moves : movedBy(moves, inner.folder);
}

/** Of a path of `cd`s; a folder further down is not known. */
const MAX_LENGTH = 1024;

/**
 * One path, from the last folder that is known by itself: 2,000 commands that each looked at the 2,000 `cd`s before them
 * took minutes.
 */
function movedBy(moves: readonly string[] | null, target: CommandWord): readonly string[] | null {
  const { kind, text } = target;
  if (kind !== "literal") return null;
  if (text.startsWith("/") || text.startsWith(HOME_MARK)) return [text];
  if (moves === null) return null;
  const path = [...moves, text].join("/");
  return path.length > MAX_LENGTH ? null : [path];
}
