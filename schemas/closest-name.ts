/** Longest compared name: known names are shorter, and the edit distance takes quadratic time. */
const LONGEST = 40;

/** Finds the known name closest to a misspelt name; undefined without a close match. */
export function closestName(name: string, known: readonly string[]): string | undefined {
  if (name.length > LONGEST) return undefined;
  const wanted = folded(name);
  let best: { readonly name: string; readonly distance: number } | undefined;
  for (const candidate of known) {
    const distance = distanceBetween(wanted, folded(candidate));
    if (distance <= allowance(name, candidate) && distance < (best?.distance ?? Number.POSITIVE_INFINITY)) {
      best = { name: candidate, distance };
    }
  }
  return best?.name;
}

/** `timeoutMs` and `timeout-ms` mean `timeout_ms`. */
function folded(name: string): string {
  return name.toLowerCase().replace(/[_-]/g, "");
}

/** Counts a prefix of three letters or more as a single wrong letter: `warning` and `warn`. */
function distanceBetween(a: string, b: string): number {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  return short.length >= 3 && long !== short && long.startsWith(short) ? 1 : editDistance(a, b);
}

function allowance(name: string, candidate: string): number {
  return Math.min(3, Math.floor(Math.max(name.length, candidate.length) / 3));
}

/** Edit distance with insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const next = [row];
    for (let column = 1; column <= b.length; column++) {
      const replaced = at(last, column - 1) + (a[row - 1] === b[column - 1] ? 0 : 1);
      const swapped =
        row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
          ? at(before, column - 2) + 1
          : replaced;
      next.push(Math.min(replaced, swapped, at(last, column) + 1, at(next, column - 1) + 1));
    }
    before = last;
    last = next;
  }
  return at(last, b.length);
}

function at(row: readonly number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY;
}
