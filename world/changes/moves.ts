/** Follows files through moved folders back to their earlier paths. Pure. */

export type Move = { readonly from: string; readonly to: string; readonly exchanged: boolean };

/**
 * Returns the path, before the moves, of the file now at `path`; undefined if the file was made there after an earlier file was
 * moved away.
 */
export function originOf(path: string, moves: readonly Move[]): string | undefined {
  let origin = path;
  for (let at = moves.length - 1; at >= 0; at -= 1) {
    const move = moves[at];
    if (move === undefined) continue;
    if (isAtOrBelow(origin, move.to)) origin = move.from + origin.slice(move.to.length);
    else if (!isAtOrBelow(origin, move.from)) continue;
    else if (move.exchanged) origin = move.to + origin.slice(move.from.length);
    // The file got the name after the move had freed the name.
    else return undefined;
  }
  return origin;
}

/** Returns the target of each move once. */
export function targetsOf(moves: readonly Move[]): ReadonlySet<string> {
  return new Set(moves.flatMap(({ from, to, exchanged }) => (exchanged ? [to, from] : [to])));
}

export function isAtOrBelow(path: string, folder: string): boolean {
  return path.startsWith(folder) && (path.length === folder.length || path[folder.length] === "/");
}
