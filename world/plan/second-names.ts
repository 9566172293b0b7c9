/** Denies names at every path that shows them: a second mount of a tree has the same files under other names. Pure. */
import { nameMayMatch } from "./cover.ts";
import { isLiteral, literalPrefix, pathOf, type Segment, segmentsOf } from "./globs.ts";
import type { HostFacts } from "./host-facts.ts";

type Pattern = readonly Segment[];

/** Returns the pattern, and a copy for every other name of the denied place. `pattern` holds real paths. */
export function atEveryName(
  pattern: Pattern,
  { otherNames }: Pick<HostFacts, "otherNames">,
): readonly Pattern[] {
  if (isLiteral(pattern)) {
    return [pattern, ...otherNames(pathOf(pattern)).map(({ path }) => segmentsOf(path))];
  }
  const prefix = literalPrefix(pattern);
  const rest = pattern.slice(segmentsOf(prefix).length);
  const others = otherNames(prefix).flatMap(({ path, part }) =>
    leftAfter(rest, segmentsOf(part).map(nameOf)).map((left) => [...segmentsOf(path), ...left]),
  );
  return [pattern, ...others];
}

/** Returns the rest of a pattern below a folder with these names; `[]`: the folder itself is denied. */
function leftAfter(pattern: Pattern, names: readonly string[]): readonly Pattern[] {
  const [head, ...tail] = pattern;
  const [name, ...deeper] = names;
  if (head === undefined || name === undefined) return [pattern];
  if (head.kind === "any") return [...leftAfter(tail, names), ...leftAfter(pattern, deeper)];
  return nameMayMatch(head, name) ? leftAfter(tail, deeper) : [];
}

function nameOf(segment: Segment): string {
  return segment.kind === "literal" ? segment.name : "";
}
