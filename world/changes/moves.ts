/** Folders that a command moved: what stands in one of them now stood elsewhere before. Pure. */

export type Move = { readonly from: string; readonly to: string; readonly exchanged: boolean };

/**
 * What stands at a path after these moves: what it was called before them; undefined when it was made there, after what
 * stood there was moved away.
 */
export function originOf(path: string, moves: readonly Move[]): string | undefined {
  let origin = path;
  for (let at = moves.length - 1; at >= 0; at -= 1) {
    const move = moves[at];
    if (move === undefined) continue;
    if (isAtOrBelow(origin, move.to)) origin = move.from + origin.slice(move.to.length);
    else if (!isAtOrBelow(origin, move.from)) continue;
    else if (move.exchanged) origin = move.to + origin.slice(move.from.length);
    // It came to that name after the name was free.
    else return undefined;
  }
  return origin;
}

/** Where something was moved to, each once. */
export function targetsOf(moves: readonly Move[]): ReadonlySet<string> {
  return new Set(moves.flatMap(({ from, to, exchanged }) => (exchanged ? [to, from] : [to])));
}

export function isAtOrBelow(path: string, folder: string): boolean {
  return path.startsWith(folder) && (path.length === folder.length || path[folder.length] === "/");
}
