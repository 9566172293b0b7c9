/** Where a spec's denied names lie: outside of what may be written they are hidden, inside they are guarded. Pure. */
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
import { isPrivate, isWithin, PRIVATE, shallowFirst, withoutStars } from "./scopes.ts";
import { SYSTEM } from "./tree-parts.ts";
import { atEveryName } from "./second-names.ts";

/**
 * A pattern for init: masked (`r`) or sealed (`w`; `s`: unless a command made it; `c`: as `s`, and judged) in a zone, hidden (`h`) outside of all zones. `g`
 * denies nothing: it names the git folders in which a missing name of a seal is not for commands to make.
 */
export type DeniedName = {
  readonly kind: "r" | "w" | "s" | "c" | "g" | "h";
  readonly segments: readonly Segment[];
};

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
    patterns
      .flatMap(parsePattern)
      .flatMap((each) => placed(each, facts))
      .flatMap((each) => atEveryName(each, facts));
  const reads = from([...spec.hidden.map(literalPattern), ...spec.files.denyRead]);
  const outside = reads.filter((segments) => !inAny(zones, literalPrefix(segments)));
  const searched = outside.filter(
    (segments) => !isLiteral(segments) && !isFloating(segments) && !isPrivate(literalPrefix(segments)),
  );
  const own = ownFolders(spec, facts);
  const named = outside
    .filter(isLiteral)
    .flatMap((segments) => standing(pathOf(segments), own, facts))
    .filter((path) => !isPrivate(path));
  const found = facts.found.filter((path) => !inAny([...zones, ...named], path));
  return {
    // What was found may be gone again, with the folder that it was in.
    hidden: shallowFirst([...named, ...found.flatMap((path) => standing(path, own, facts))]),
    searched: searched.map(literalPrefix),
    names: [
      ...guarded(reads, zones).map((segments) => ({ kind: "r", segments }) as const),
      // A person's link on the way may be removed, and a folder put in its place: the spelled name is denied too.
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

/** Where links lead from the names whose changes are held: under the name of what they lead to nobody would know them again. */
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
 * A seal that begins with `**` looks for repositories in the whole working tree, which costs a walk. Over an overlay it is left to
 * whoever applies what is held (broker/held/denied-paths.ts): on the host nothing is changed meanwhile.
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

/** `**` before the name of a git folder, or another one with a dot, means working trees: no tool keeps such names elsewhere. */
function asTree(segments: readonly Segment[]): readonly Segment[] {
  const first = segments.findIndex(({ kind }) => kind === "any");
  const next = segments[first + 1];
  const isDotted = next?.kind === "literal" && next.name.startsWith(".");
  return first >= 0 && (isDotted || isGitFolder(next)) ? segments.with(first, { kind: "tree" }) : segments;
}

function isGitFolder(segment: Segment | undefined): boolean {
  return segment?.kind === "glob" && segment.pattern === "*.git";
}

/** As much of a seal as names the git folder. */
function gitFolder(segments: readonly Segment[]): readonly Segment[] {
  return segments.slice(0, segments.findIndex(isGitFolder) + 1);
}

function unique(patterns: readonly (readonly Segment[])[]): readonly (readonly Segment[])[] {
  return [...new Map(patterns.map((segments) => [JSON.stringify(segments), segments])).values()];
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

/**
 * Patterns that hold in every tree (`**` and a name). A walk of the whole host for each world would take seconds, so what
 * they stand for is found beside it and comes in as a fact.
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
 * What that walk leaves out: besides what no world shows of the host, the trees of programs and settings. There the same names are
 * parts of programs (`**` and `*.pem` would hide every certificate that a client trusts).
 */
export function unfound(facts: Pick<HostFacts, "folders">): readonly Zone[] {
  const system = facts
    .folders("/")
    .map((name) => `/${name}`)
    .filter((path) => SYSTEM.test(path));
  return [...unsearched(), ...system.map((path) => ({ kind: "skip", path }) as const)];
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
  if (segment.kind === "glob") return `G${segment.pattern}`;
  return segment.kind === "any" ? "D" : "T";
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
 * much and makes nothing. Nothing can stand below a file. A whiteout over a folder of the world's own, or above one, would take
 * that folder away: of what lies beside it only the name itself is hidden (a listing still has it, without a host folder to
 * merge with), and in it there is nothing of the host's.
 */
function standing(path: string, own: readonly string[], facts: HostFacts): readonly string[] {
  if (inAny(own, path)) return [];
  const parent = dirname(path);
  const isMade = own.some((folder) => isWithin(folder, parent));
  if (parent === "/" || isMade || facts.kind(parent) === "folder") return [path];
  return facts.kind(parent) === "missing" ? standing(parent, own, facts) : [];
}

/** Folders of `files.scratch` that the host does not have: empty ones of the world's own stand there (scratch.ts). */
function ownFolders({ files: { scratch = [] } }: WorldSpec, facts: HostFacts): readonly string[] {
  if (facts.layers === undefined) return [];
  return scratch.map(withoutStars).filter((path) => facts.kind(path) === "missing");
}

function inAny(zones: readonly string[], path: string): boolean {
  return zones.some((zone) => isWithin(path, zone));
}
