/** Finds and reads the policies that a policy starts from (`extends`). */
import { basename, dirname, join } from "node:path";
import type { PolicyProblem } from "./decision.ts";
import { extended, type OwnFile, type Written } from "./extends.ts";
import { problem, problemAt, readOwn } from "./read-own.ts";
import { identityOf, MISSING, readText } from "./read-text.ts";

/** A file that an answer rests on, one that was looked for and is not there among them. */
export interface BaseFile {
  readonly path: string;
  /** Taken before it was read. */
  readonly identity: string;
  /** Null where it could not be read. */
  readonly text: string | null;
}

export interface Bases {
  /** The folder of the shipped policies. */
  readonly shipped: string;
  /** Filled with every file that was looked for. */
  readonly files: BaseFile[];
}

/**
 * The policy that `own` starts from, with all that it starts from itself.
 *
 * @param below absolute paths: the file of `own`, and before it those that start from it.
 */
export function baseOf(
  own: OwnFile,
  below: readonly [string, ...string[]],
  bases: Bases,
): Written | readonly PolicyProblem[] {
  const name = own.document.extends ?? "";
  const wrong = (message: string): readonly PolicyProblem[] => [problemAt(own.at, ["extends"], message)];
  const path = fileOf(name, below[0], bases);
  if (path === undefined)
    return wrong(`No policy is called '${name}' beside this file or among the shipped ones`);
  if (below.includes(path)) return wrong(`'${name}' starts from this policy itself`);
  const file = below.some((each) => basename(each) === basename(path))
    ? `shipped/${basename(path)}`
    : basename(path);
  const identity = identityOf(path);
  const text = readText(path);
  bases.files.push({ path, identity, text: "ok" in text ? text.ok : null });
  if ("why" in text) return [problem({ file, line: 0, column: 0 }, [], text.why)];
  const read = readOwn(text.ok, file);
  if ("problems" in read) return read.problems;
  if (read.own.document.extends === undefined) return read.own;
  const further = baseOf(read.own, [path, ...below], bases);
  return "document" in further ? extended(further, read.own) : further;
}

/** Beside the file that names it, else among the shipped ones. A file's own name means the shipped one. */
function fileOf(name: string, from: string, { shipped, files }: Bases): string | undefined {
  const places = new Set([join(dirname(from), `${name}.yaml`), join(shipped, `${name}.yaml`)]);
  places.delete(from);
  for (const path of places) {
    const identity = identityOf(path);
    if (identity !== MISSING) return path;
    files.push({ path, identity, text: null });
  }
  return undefined;
}
