/** Places a spec's denied names: outside writable trees they are hidden, inside they are guarded. Pure. */
import { dirname, basename, join } from "node:path";
import type { WorldSpec } from "../model/world.ts";
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
import { isInAny, isPrivate, isWithin, PRIVATE, shallowFirst, withoutStars } from "./scopes.ts";
import { SYSTEM } from "./tree-parts.ts";
import { atEveryName } from "./second-names.ts";

/**
 * A pattern for init. In a zone: `r` masks, `w` seals, `s` seals unless a command made the name, `c` is `s` and judged. Outside
 * all zones: `h` hides. `g` denies nothing: the pattern names git folders in which commands may not create missing sealed names.
 */
export type DeniedName = {
  readonly kind: "r" | "w" | "s" | "c" | "g" | "h";
  readonly segments: readonly Segment[];
};

/** A tree for init to search: the host's own files (`watch`), an overlay (`once`), or excluded (`skip`). */
export type Zone = { readonly kind: "watch" | "once" | "skip"; readonly path: string };

export type Denials = {
  /** Host paths to hide outside all zones, existing or not. */
  readonly hidden: readonly string[];
  /** Folders in which patterns with wildcards hide names. */
  readonly searched: readonly string[];
  readonly names: readonly DeniedName[];
};

/** Returns the denied names. `zones`: folders to be bound or overlaid, whose content can change while the world runs. */
export function denials(spec: WorldSpec, zones: readonly string[], facts: HostFacts): Denials {
  const from = (patterns: readonly string[]): readonly (readonly Segment[])[] =>
    patterns
      .flatMap(parsePattern)
      .flatMap((each) => placed(each, facts))
      .flatMap((each) => atEveryName(each, facts));
  const reads = from([...spec.hidden.map(literalPattern), ...spec.files.denyRead]);
  const outside = reads.filter((segments) => !isInAny(zones, literalPrefix(segments)));
  const searched = outside.filter(
    (segments) => !isLiteral(segments) && !isFloating(segments) && !isPrivate(literalPrefix(segments)),
  );
  const own = ownFolders(spec, facts);
  const named = outside
    .filter(isLiteral)
    .flatMap((segments) => standing(pathOf(segments), own, facts))
    .filter((path) => !isPrivate(path) && facts.keptByModes?.has(path) !== true);
  const found = facts.found.filter((path) => !isInAny([...zones, ...named], path));
  return {
    // Names found by the search may have vanished since, together with their folders.
    hidden: shallowFirst([...named, ...found.flatMap((path) => standing(path, own, facts))]),
    searched: searched.map(literalPrefix),
    names: [
      ...guarded(reads, zones).map((segments) => ({ kind: "r", segments }) as const),
      // A person's link on the path may be removed and replaced by a folder, so the path as spelled is denied too.
      ...guarded(
        unique([
          ...from(spec.files.denyWrite),
          ...spec.files.denyWrite.flatMap(parsePattern),
          ...ledElsewhere(spec, facts),
        ]),
        zones,
      ).map((segments) => ({ kind: "w", segments }) as const),
      ...seals(guarded(from(spec.files.seal), zones), guarded(from(spec.files.judged ?? []), zones), spec),
      ...searched.map((segments) => ({ kind: "h", segments }) as const),
    ],
  };
}

/** Targets of links on the way to held names: a change there would have the target's name and not be recognised as held. */
function ledElsewhere(
  { files: { held = [] } }: WorldSpec,
  facts: HostFacts,
): readonly (readonly Segment[])[] {
  return held.flatMap(parsePattern).flatMap((spelled) => {
    const own = JSON.stringify(spelled);
    return placed(spelled, facts)
      .flatMap((each) => atEveryName(each, facts))
      .filter((each) => JSON.stringify(each) !== own);
  });
}

/**
 * Returns the seals. A seal that begins with `**` looks for repositories in the whole working tree, at the cost of a walk. Over
 * an overlay the check at apply time suffices (broker/held/denied-paths.ts): meanwhile the host is unchanged.
 */
function seals(
  patterns: readonly (readonly Segment[])[],
  judged: readonly (readonly Segment[])[],
  spec: WorldSpec,
): readonly DeniedName[] {
  const own = patterns.map(asTree);
  const asked = new Set(judged.map((segments) => JSON.stringify(asTree(segments))));
  const trees = own.filter((segments) => segments.some(({ kind }) => kind === "tree"));
  if (spec.access.kind === "overlay")
    return own.filter((segments) => !trees.includes(segments)).map((segments) => ({ kind: "s", segments }));
  const folders = new Map(trees.map(gitFolder).map((segments) => [JSON.stringify(segments), segments]));
  return [
    ...own.map((segments) => ({ kind: asked.has(JSON.stringify(segments)) ? "c" : "s", segments }) as const),
    ...[...folders.values()]
      .filter((segments) => segments.length > 0)
      .map((segments) => ({ kind: "g", segments }) as const),
  ];
}

/**
 * Turns `**` before a git folder, or before another dotted name, into `tree` (working trees only): tools keep such names nowhere
 * else.
 */
function asTree(segments: readonly Segment[]): readonly Segment[] {
  const first = segments.findIndex(({ kind }) => kind === "any");
  const next = segments[first + 1];
  const isDotted = next?.kind === "literal" && next.name.startsWith(".");
  return first >= 0 && (isDotted || isGitFolder(next)) ? segments.with(first, { kind: "tree" }) : segments;
}

function isGitFolder(segment: Segment | undefined): boolean {
  return segment?.kind === "glob" && segment.pattern === "*.git";
}

/** Returns the start of a seal, up to and including the git folder. */
function gitFolder(segments: readonly Segment[]): readonly Segment[] {
  return segments.slice(0, segments.findIndex(isGitFolder) + 1);
}

function unique(patterns: readonly (readonly Segment[])[]): readonly (readonly Segment[])[] {
  return [...new Map(patterns.map((segments) => [JSON.stringify(segments), segments])).values()];
}

/** Keeps patterns that can match in a zone or cover a whole zone; init has no use for the others. */
function guarded(
  patterns: readonly (readonly Segment[])[],
  zones: readonly string[],
): readonly (readonly Segment[])[] {
  return patterns.filter((segments) => {
    const prefix = literalPrefix(segments);
    return isInAny(zones, prefix) || zones.some((zone) => isWithin(zone, prefix));
  });
}

/**
 * Returns the patterns that hold in every tree (`**` and a name). A walk of the whole host per world would take seconds, so a
 * separate search finds the names, which enter the plan as facts.
 */
export function floating(spec: WorldSpec): readonly DeniedName[] {
  return spec.files.denyRead
    .flatMap(parsePattern)
    .filter(isFloating)
    .map((segments) => ({ kind: "h", segments }));
}

function isFloating(segments: readonly Segment[]): boolean {
  return segments[0]?.kind === "any";
}

/**
 * Returns the trees excluded from that search: the trees hidden in every world, and the trees of programs and settings. There
 * such names are parts of programs (`**` and `*.pem` would hide every certificate trusted by clients).
 */
export function unfound(facts: Pick<HostFacts, "folders">): readonly Zone[] {
  const system = facts
    .folders("/")
    .map((name) => `/${name}`)
    .filter((path) => SYSTEM.test(path));
  return [...unsearched(), ...system.map((path) => ({ kind: "skip", path }) as const)];
}

/** Returns the trees excluded from every search for hidden names. */
export function unsearched(): readonly Zone[] {
  return ["/proc", "/sys", "/dev", ...PRIVATE].map((path) => ({ kind: "skip", path }));
}

/** Encodes a denied name for init. */
export function denialWords({ kind, segments }: DeniedName): readonly string[] {
  return [kind, ...segments.map(segmentWord)];
}

function segmentWord(segment: Segment): string {
  if (segment.kind === "literal") return `L${segment.name}`;
  if (segment.kind === "glob") return `G${segment.pattern}`;
  return segment.kind === "any" ? "D" : "T";
}

/**
 * Resolves links on a pattern's path. A literal path yields its spelling (the link itself is denied too) and its target; a
 * pattern moves to the real folder of its literal prefix.
 */
function placed(segments: readonly Segment[], facts: HostFacts): readonly (readonly Segment[])[] {
  if (segments.length === 0) return [];
  if (!isLiteral(segments)) return [movedTo(resolved(literalPrefix(segments), facts), segments)];
  const path = pathOf(segments);
  const spelled = join(resolved(dirname(path), facts), basename(path));
  const target = facts.real(path);
  return [...new Set([spelled, ...(target === undefined ? [] : [target])])].map(segmentsOf);
}

/** Resolves the existing part of a path; the rest stays as spelled. */
function resolved(path: string, facts: HostFacts): string {
  if (path === "/") return path;
  return facts.real(path) ?? join(resolved(dirname(path), facts), basename(path));
}

/**
 * Returns the path at which to hide a name. If its parent is missing, a whiteout would create the parent; hiding the topmost
 * missing folder has the same effect and creates nothing. Nothing can exist below a file. A whiteout over or above a folder of
 * the world's own would remove that folder: beside such a folder only the name itself is hidden (and still listed, without a host
 * folder to merge with), and inside such a folder nothing comes from the host.
 */
function standing(path: string, own: readonly string[], facts: HostFacts): readonly string[] {
  if (isInAny(own, path)) return [];
  const parent = dirname(path);
  const isMade = own.some((folder) => isWithin(folder, parent));
  if (parent === "/" || isMade || facts.kind(parent) === "folder") return [path];
  return facts.kind(parent) === "missing" ? standing(parent, own, facts) : [];
}

/** Folders of `files.scratch` missing on the host: the world has empty ones there (scratch.ts). */
function ownFolders({ files: { scratch = [] } }: WorldSpec, facts: HostFacts): readonly string[] {
  if (facts.layers === undefined) return [];
  return scratch.map(withoutStars).filter((path) => facts.kind(path) === "missing");
}
