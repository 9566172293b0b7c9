import { type CommandWord, HOME_MARK } from "./command.ts";
import type { Inner } from "./inner.ts";

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
