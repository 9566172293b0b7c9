import { type CommandWord, HOME_MARK } from "./command.ts";
import type { Inner } from "./inner.ts";

/** Where the shell stands after these words, when they are a `cd`; null when that is not known. */
export function movesAfter(
  words: readonly CommandWord[],
  moves: readonly string[] | null,
): readonly string[] | null {
  const program = words[0]?.text;
  if (program === "popd") return null;
  if (moves === null || (program !== "cd" && program !== "pushd")) return moves;
  const known = words.slice(1).filter((word) => word.vanishes !== true);
  const target = known.find((word) => !/^-./.test(word.text));
  if (target === undefined) return known.length < words.length - 1 ? null : [...moves, HOME_MARK];
  return target.text === "-" ? null : movedBy(moves, target);
}

/** Where a wrapper such as `env -C` runs its command. */
export function movesTo(inner: Inner, moves: readonly string[] | null): readonly string[] | null {
  return inner.kind === "opaque" || inner.folder === undefined ? moves : movedBy(moves, inner.folder);
}

function movedBy(moves: readonly string[] | null, target: CommandWord): readonly string[] | null {
  return moves !== null && target.kind === "literal" ? [...moves, target.text] : null;
}
