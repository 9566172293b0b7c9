/** File scopes that are never granted, even with a person's approval. Pure: paths are already resolved. */
import { isPrivate } from "../../world/backend.ts";
import type { SpecOfFiles } from "../worlds/world-spec.ts";
import { isKernels } from "../model/folders.ts";
import { isWithin, type ProjectRules, protectedBecause } from "../project/projects.ts";
import { quoted, type Refusal, refusal } from "../model/refusal.ts";
import { type DeniedPlaces, denyingCover } from "./denied-places.ts";
import type { PlacedScope } from "../model/scope.ts";

/**
 * Why a scope can never be granted; undefined when a person may be asked. `spec` is the policy's world, `places` the
 * resolved deny lists.
 */
export function neverGranted(
  scope: PlacedScope,
  spec: SpecOfFiles,
  places: DeniedPlaces,
  rules: ProjectRules,
): Refusal | undefined {
  const why =
    ownFolder(scope, spec) ??
    hidden(scope, rules) ??
    denied(scope, spec, places) ??
    (scope.kind === "fs.write" ? unwritable(scope, spec, rules) : tooWide(scope, rules));
  return why === undefined ? undefined : never(scope, why);
}

function ownFolder({ path }: PlacedScope, { project }: SpecOfFiles): string | undefined {
  if (isWithin(path, project)) return undefined;
  if (isKernels(path)) return "it belongs to the kernel, and each world has its own";
  return isPrivate(path) ? "each world has its own such folder, without the host's files" : undefined;
}

function hidden({ path }: PlacedScope, rules: ProjectRules): string | undefined {
  const over = rules.hidden.find((folder) => isWithin(path, folder));
  return over === undefined ? undefined : `it lies in SUBSTRATE_HOME ('${over}')`;
}

/** Checks the real path and the asked path: denying a link denies the link and its target. */
function denied(
  { kind, path, named }: PlacedScope,
  { files }: SpecOfFiles,
  places: DeniedPlaces,
): string | undefined {
  const names = [path, named.path];
  const find = (patterns: readonly string[], led: readonly string[]): string | undefined =>
    patterns.find((pattern) => names.some(denyingCover(pattern).covers)) ??
    led.find((place) => isWithin(path, place));
  const read = find(files.denyRead, places.read);
  if (read !== undefined) return `fs.deny_read has '${read}'`;
  const write = kind === "fs.write" ? find([...files.denyWrite, ...files.seal], places.write) : undefined;
  return write === undefined ? undefined : `fs.deny_write has '${write}'`;
}

function unwritable(scope: PlacedScope, spec: SpecOfFiles, rules: ProjectRules): string | undefined {
  const { path, owner } = scope;
  const sealed = spec.sealed.find((folder) => isWithin(path, folder));
  if (sealed !== undefined) return `it belongs to the running installation ('${sealed}')`;
  const why = protectedBecause(path, rules);
  if (why !== undefined) return why;
  return owner === rules.uid
    ? undefined
    : `it belongs to user ${owner} and the broker runs as user ${rules.uid}`;
}

function tooWide({ path }: PlacedScope, rules: ProjectRules): string | undefined {
  return isWithin(rules.home, path) ? "it is the home folder, or contains it" : undefined;
}

function never({ named }: PlacedScope, why: string): Refusal {
  return refusal(
    "scope_denied",
    `Cannot grant ${quoted(named.asked)}: ${why}`,
    "No scope can be granted for it: ask for another path, or do the task without it",
  );
}
