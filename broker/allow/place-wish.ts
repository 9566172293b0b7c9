import { type Cover, coverOf } from "../../world/backend.ts";
import { fileLists } from "../policy/files/file-lists.ts";
import { fileScope } from "../policy/files/file-scope.ts";
import type { CompiledPolicy } from "../policy/index.ts";
import { NO_PROJECT } from "../project/projects.ts";
import { leadsTo } from "../scopes/denied-places.ts";
import { covers } from "../worlds/world-spec.ts";
import { isWithin } from "../model/folders.ts";
import type { AllowedPlace, Spot } from "./place.ts";
import type { Sources } from "./policy-file.ts";
import type { Standing, Wish } from "./wish.ts";

/** Judges a wish to allow a path: the policy's present answer, and the missing entries. Resolves denied names on the host. */
export function placeWish(
  kind: "read" | "write",
  place: AllowedPlace,
  policy: CompiledPolicy,
  sources: Sources,
  { project = NO_PROJECT, rules: { home } }: Spot,
): Wish {
  const { document } = policy;
  const lists = fileLists(document);
  const scope = fileScope(document, project, home);
  const denials: readonly Denial[] = [
    ...denialsOf("deny_read", lists.deny_read, scope.denyRead, sources),
    ...(kind === "write" ? denialsOf("deny_write", lists.deny_write, scope.denyWrite, sources) : []),
    ...(kind === "write" ? denialsOf("sealed", lists.sealed, scope.seal, sources) : []),
  ];
  const names = [...new Set([place.asked, place.real])];
  const isRefused = ({ cover, led }: Denial): boolean =>
    names.some((name) => cover.covers(name)) || led.some((denied) => isWithin(place.real, denied));
  const refusals = denials.filter(isRefused);
  const partly = place.below
    ? denials.filter((one) => !refusals.includes(one) && names.some((name) => one.cover.reachesBelow(name)))
    : [];
  const wanted = place.below ? `${place.real === "/" ? "" : place.real}/**` : place.real;
  const given = standing(kind, wanted, lists, scope, sources);
  return {
    additions:
      given === undefined ? [...linkTo(place, scope.read), { list: `fs.${kind}`, value: place.entry }] : [],
    ...(given === undefined ? {} : { already: given }),
    refusals: refusals.map(shown),
    partly: partly.map(shown),
    notes: given === undefined ? place.notes : [],
  };
}

/** Adds the link itself to `fs.read`, for commands that use the link, unless a list already shows the link. */
function linkTo({ asked, link }: AllowedPlace, read: readonly string[]): Wish["additions"] {
  return link === undefined || covers(read, asked) ? [] : [{ list: "fs.read", value: link }];
}

/** `led`: targets of denied names that are links. */
type Denial = Standing & {
  readonly cover: Cover;
  readonly led: readonly string[];
};

/** Only a new world decides about `[…]`: in doubt the name counts as denied. */
function denialsOf(
  list: "deny_read" | "deny_write" | "sealed",
  written: readonly string[],
  patterns: readonly string[],
  sources: Sources,
): readonly Denial[] {
  return patterns.map((pattern, at) => ({
    list: list === "sealed" ? "the seals of fs.deny_write" : `fs.${list}`,
    pattern: written[at] ?? pattern,
    source: list === "sealed" ? sources(["fs", "deny_write"]) : sources(["fs", list, at]),
    cover: coverOf(pattern.replace(/(?<!\\)\[[^\]]*\]/g, "?")),
    led: leadsTo(pattern),
  }));
}

function shown({ list, pattern, source }: Denial): Standing {
  return { list, pattern, source };
}

/** Returns the line that grants the path: writable paths are readable as well. */
function standing(
  kind: "read" | "write",
  wanted: string,
  lists: ReturnType<typeof fileLists>,
  scope: ReturnType<typeof fileScope>,
  sources: Sources,
): Wish["already"] {
  const keys = kind === "read" ? (["read", "write"] as const) : (["write"] as const);
  for (const key of keys) {
    const at = scope[key].findIndex((entry) => covers([entry], wanted));
    if (at === -1) continue;
    return {
      source: sources(["fs", key, at]),
      how: `'${lists[key][at]}' in fs.${key}`,
    };
  }
  return undefined;
}
