/**
 * Merges a policy with its base (`extends`): lists are appended to the base's lists, and every other value replaces the base's;
 * so does a list written `!only [..]`. Pure.
 */
import type { PolicyDocument } from "../../../schemas/generated/types.ts";
import { fileLists } from "../files/file-lists.ts";
import { PASSED_BY_DEFAULT } from "../rules/passed-variables.ts";
import type { DocumentPath, Written, WrittenAt } from "../rules/written.ts";

/** A single file without its base. `only`: paths of the `!only` lists, keys joined by dots. */
export interface OwnFile extends Written {
  readonly only: ReadonlySet<string>;
}

export function extended(base: Written, own: OwnFile): Written {
  const from: Written = { ...base, document: withAbsentLists(base.document, own.document) };
  const { extends: _, ...document } = merged(from.document, own.document, [], own.only) as PolicyDocument;
  return { document, at: (path) => placeIn(path, from, own) };
}

/** Fills absent lists of the base with their defaults, so that the own file's rows are appended to the defaults. */
function withAbsentLists(base: PolicyDocument, own: PolicyDocument): PolicyDocument {
  const { sealed: _, ...lists } = fileLists(base);
  const fs = Object.fromEntries(
    Object.entries(lists).filter(([list]) => own.fs?.[list as keyof typeof lists]),
  );
  const env = base.world?.env ?? PASSED_BY_DEFAULT;
  return {
    ...base,
    ...(own.fs === undefined ? {} : { fs: { ...base.fs, ...fs } }),
    ...(own.world?.env === undefined ? {} : { world: { ...base.world, env: [...env] } }),
  };
}

function merged(base: unknown, own: unknown, path: DocumentPath, only: OwnFile["only"]): unknown {
  if (isAdded(base, own, path, only)) return [...base, ...(own as unknown[])];
  if (!isMap(base) || !isMap(own)) return own;
  const both = Object.entries(own).map(([key, value]) =>
    key in base ? [key, merged(base[key], value, [...path, key], only)] : [key, value],
  );
  return { ...base, ...Object.fromEntries(both) };
}

function placeIn(path: DocumentPath, base: Written, own: OwnFile): WrittenAt {
  let [theirs, ours]: unknown[] = [base.document, own.document];
  for (const [depth, key] of path.entries()) {
    const above = path.slice(0, depth);
    if (typeof key === "number" && isAdded(theirs, ours, above, own.only)) {
      const among = key - theirs.length;
      return among < 0 ? base.at(path) : own.at([...above, among, ...path.slice(depth + 1)]);
    }
    const [inBase, inOwn] = [partOf(theirs, key), partOf(ours, key)];
    if (inBase === undefined || inOwn === undefined)
      return inBase === undefined ? own.at(path) : base.at(path);
    [theirs, ours] = [inBase, inOwn];
  }
  return own.at(path);
}

function isAdded(base: unknown, own: unknown, path: DocumentPath, only: OwnFile["only"]): base is unknown[] {
  return Array.isArray(base) && Array.isArray(own) && !only.has(path.join("."));
}

function partOf(value: unknown, key: string | number): unknown {
  return isMap(value) || Array.isArray(value) ? (value as Record<string | number, unknown>)[key] : undefined;
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
