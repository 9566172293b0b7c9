/** Whether a deny pattern matches a path or a folder above. Pure. */
import { isLiteral, literalPrefix, parsePattern, type Segment } from "./globs.ts";

/**
 * Matches for explaining a refusal in advance, so doubt means no: `[…]` is left to fnmatch.
 *
 * @param pattern absolute, as `FileScope.denyWrite` holds them.
 * @param path absolute and normal.
 */
export function patternCovers(pattern: string, path: string): boolean {
  return coverOf(pattern).covers(path);
}

/** A parsed pattern, for matching many paths. */
export type Cover = {
  readonly covers: (path: string) => boolean;
  /** Whether the pattern may cover a name below the path, without covering the path itself. */
  readonly reachesBelow: (path: string) => boolean;
  /**
   * Whether the path's last name is a folder of the pattern, spelled or by `*`: a link there puts its target under covered names.
   * False for folders that only `**` leads to, which every folder is. Same as init's `rules_through`.
   */
  readonly namesFolder: (path: string) => boolean;
};

export function coverOf(pattern: string): Cover {
  const words = parsePattern(pattern).map((segments) => ({
    segments,
    // Performance: the first folders alone decide most comparisons.
    prefix: literalPrefix(segments),
    isWhole: isLiteral(segments),
  }));
  return {
    covers: (path) =>
      words.some(
        ({ segments, prefix, isWhole }) =>
          isAtOrBelow(path, prefix) && (isWhole || covers(segments, namesIn(path))),
      ),
    reachesBelow: (path) =>
      words.some(
        ({ segments, prefix }) =>
          (isAtOrBelow(path, prefix) || isAtOrBelow(prefix, path)) && reaches(segments, namesIn(path)),
      ),
    namesFolder: (path) =>
      words.some(
        ({ segments, prefix }) =>
          (isAtOrBelow(path, prefix) || isAtOrBelow(prefix, path)) && namesAFolder(segments, namesIn(path)),
      ),
  };
}

function isAtOrBelow(path: string, folder: string): boolean {
  return folder === "/" || path === folder || path.startsWith(`${folder}/`);
}

function namesIn(path: string): readonly string[] {
  return path.split("/").filter((name) => name !== "");
}

function reaches(segments: readonly Segment[], names: readonly string[]): boolean {
  const places = placesAfter(segments, names);
  return !places.has(segments.length) && places.size > 0;
}

function namesAFolder(segments: readonly Segment[], names: readonly string[]): boolean {
  const name = names.at(-1) ?? "";
  return [...placesAfter(segments, names.slice(0, -1))].some((place) => {
    const segment = segments[place];
    if (segment === undefined || segment.kind === "any") return false;
    return place + 1 < segments.length && nameMatches(segment, name);
  });
}

function covers(segments: readonly Segment[], names: readonly string[]): boolean {
  return placesAfter(segments, names).has(segments.length);
}

/** Returns every position in the pattern that the names may have reached; a pattern at its end covers everything below. */
function placesAfter(segments: readonly Segment[], names: readonly string[]): ReadonlySet<number> {
  let places = withSkips(new Set([0]), segments);
  for (const name of names) {
    if (places.has(segments.length)) return places;
    const next = new Set<number>();
    for (const place of places) {
      const segment = segments[place];
      if (segment?.kind === "any") next.add(place);
      else if (segment !== undefined && nameMatches(segment, name)) next.add(place + 1);
    }
    places = withSkips(next, segments);
  }
  return places;
}

/** `**` may match no folder at all. */
function withSkips(places: Set<number>, segments: readonly Segment[]): Set<number> {
  for (const place of places) if (segments[place]?.kind === "any") places.add(place + 1);
  return places;
}

function nameMatches(segment: Segment, name: string): boolean {
  if (segment.kind === "literal") return segment.name === name;
  return segment.kind === "glob" && !segment.pattern.includes("[") && globMatches(segment.pattern, name);
}

/** Matches for denying, so doubt means yes. */
export function nameMayMatch(segment: Segment, name: string): boolean {
  const isDoubtful = segment.kind === "glob" && segment.pattern.includes("[");
  return isDoubtful || nameMatches(segment, name);
}

/** Matches `*`, `?` and backslash escapes; remembers only the last star instead of recursing. */
function globMatches(pattern: string, name: string): boolean {
  const letters = pattern.match(/\\.|[^]/gsu) ?? [];
  const characters = [...name];
  let [at, from, star, resume] = [0, 0, -1, 0];
  while (at < characters.length) {
    const letter = letters[from];
    if (letter === "*") {
      [star, resume] = [from, at];
      from += 1;
    } else if (letter !== undefined && letterMatches(letter, characters[at])) {
      from += 1;
      at += 1;
    } else if (star >= 0) {
      resume += 1;
      [from, at] = [star + 1, resume];
    } else return false;
  }
  while (letters[from] === "*") from += 1;
  return from === letters.length;
}

function letterMatches(letter: string, character: string | undefined): boolean {
  return letter === "?" || letter === character || (letter.length > 1 && letter.slice(1) === character);
}
