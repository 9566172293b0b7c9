/** Where a spec's denied names lie: outside of what may be written they are hidden, inside they are guarded. Pure. */
import { dirname, basename, join } from "node:path";
import type { WorldSpec } from "../backend.ts";
import {
  isLiteral,
  literalPattern,
  literalPrefix,
  movedTo,
  parsePattern,
  pathOf,
  type Segment,
  segmentsOf,
} from "./globs.ts";
import type { HostFacts } from "./host-facts.ts";
import { isPrivate, isWithin, PRIVATE, shallowFirst } from "./scopes.ts";

/** A pattern for init: masked (`r`) or sealed (`w`; `s`: unless a command made it) in a zone, hidden (`h`) outside of all zones. */
export type DeniedName = { readonly kind: "r" | "w" | "s" | "h"; readonly segments: readonly Segment[] };

/** A tree for init to look through: the host's own files (`watch`), an overlay (`once`), or neither (`skip`). */
export type Zone = { readonly kind: "watch" | "once" | "skip"; readonly path: string };

export type Denials = {
  /** Host paths outside of all zones that are not to be seen, existing or not. */
  readonly hidden: readonly string[];
  /** Folders in which patterns with wildcards hide names. */
  readonly searched: readonly string[];
  readonly names: readonly DeniedName[];
};

/** `zones` are the folders that will be bound or overlaid: what lies there can change under our eyes. */
export function denials(spec: WorldSpec, zones: readonly string[], facts: HostFacts): Denials {
  const from = (patterns: readonly string[]): readonly (readonly Segment[])[] =>
    patterns.flatMap(parsePattern).flatMap((each) => placed(each, facts));
  const reads = from([...spec.hidden.map(literalPattern), ...spec.files.denyRead]);
  const outside = reads.filter((segments) => !inAny(zones, literalPrefix(segments)));
  const searched = outside.filter((segments) => !isLiteral(segments) && !isPrivate(literalPrefix(segments)));
  return {
    hidden: shallowFirst(
      outside
        .filter(isLiteral)
        .flatMap((segments) => standing(pathOf(segments), facts))
        .filter((path) => !isPrivate(path)),
    ),
    searched: searched.map(literalPrefix),
    names: [
      ...guarded(reads, zones).map((segments) => ({ kind: "r", segments }) as const),
      ...guarded(from(spec.files.denyWrite), zones).map((segments) => ({ kind: "w", segments }) as const),
      ...guarded(from(spec.files.seal), zones).map((segments) => ({ kind: "s", segments }) as const),
      ...searched.map((segments) => ({ kind: "h", segments }) as const),
    ],
  };
}

/** Those that can match in a zone, or cover it as a whole: of all others init would only know. */
function guarded(
  patterns: readonly (readonly Segment[])[],
  zones: readonly string[],
): readonly (readonly Segment[])[] {
  return patterns.filter((segments) => {
    const prefix = literalPrefix(segments);
    return inAny(zones, prefix) || zones.some((zone) => isWithin(zone, prefix));
  });
}

/** The folders that the walk for hidden names leaves out. */
export function unsearched(): readonly Zone[] {
  return ["/proc", "/sys", "/dev", ...PRIVATE].map((path) => ({ kind: "skip", path }));
}

/** The words of a denied name as they cross to init. */
export function denialWords({ kind, segments }: DeniedName): readonly string[] {
  return [kind, ...segments.map(segmentWord)];
}

function segmentWord(segment: Segment): string {
  if (segment.kind === "literal") return `L${segment.name}`;
  return segment.kind === "glob" ? `G${segment.pattern}` : "D";
}

/**
 * Where a pattern leads once links on its way are followed: a literal path as it is spelled (the link itself is
 * denied too), and where it leads; a pattern below the folder that its literal beginning names.
 */
function placed(segments: readonly Segment[], facts: HostFacts): readonly (readonly Segment[])[] {
  if (segments.length === 0) return [];
  if (!isLiteral(segments)) return [movedTo(resolved(literalPrefix(segments), facts), segments)];
  const path = pathOf(segments);
  const spelled = join(resolved(dirname(path), facts), basename(path));
  const target = facts.real(path);
  return [...new Set([spelled, ...(target === undefined ? [] : [target])])].map(segmentsOf);
}

/** The real path of as much as exists, and the rest as it is spelled. */
function resolved(path: string, facts: HostFacts): string {
  if (path === "/") return path;
  return facts.real(path) ?? join(resolved(dirname(path), facts), basename(path));
}

/**
 * A whiteout for a path whose parent is missing would make that parent; one for the topmost missing folder hides as
 * much and makes nothing. Nothing can stand below a file.
 */
function standing(path: string, facts: HostFacts): readonly string[] {
  const parent = dirname(path);
  if (parent === "/" || facts.kind(parent) === "folder") return [path];
  return facts.kind(parent) === "missing" ? standing(parent, facts) : [];
}

function inAny(zones: readonly string[], path: string): boolean {
  return zones.some((zone) => isWithin(path, zone));
}
