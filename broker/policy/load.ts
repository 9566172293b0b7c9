import { basename } from "node:path";
import { type BaseFile, baseOf } from "./bases.ts";
import { compilePolicy } from "./compile.ts";
import type { PolicyLoad, PolicyProblem } from "./decision.ts";
import { extended, type OwnFile, type Written } from "./extends.ts";
import { problem, problemAt, readOwn } from "./read-own.ts";
import { readText } from "./read-text.ts";
import { PassedRules } from "./rule-set.ts";

export { MAX_POLICY_BYTES } from "./read-text.ts";

/** The policy that a file's `extends` names, or what is wrong with it. */
export type FindBase = (own: OwnFile) => Written | readonly PolicyProblem[];

/** A policy file as it was read, with the files that the answer rests on beside it. */
export type LoadedFile = PolicyLoad & { readonly text: string; readonly bases: readonly BaseFile[] };

/**
 * Reads, validates and compiles a policy file and the policies that it starts from. Bad content and unreadable files come back as
 * problems. In one go, so that no command is decided between the old policy and the new one.
 *
 * @param path absolute path; its last part is the file name in `rule.source` and in problems.
 * @param shipped the folder of the shipped policies, which `extends` may name.
 * @param passed rules whose examples need not be tried again.
 */
export function loadPolicy(path: string, shipped: string, passed = new PassedRules()): LoadedFile {
  const file = basename(path);
  const text = readText(path);
  if ("why" in text)
    return { problems: [problem({ file, line: 0, column: 0 }, [], text.why)], text: "", bases: [] };
  const bases: BaseFile[] = [];
  const loaded = parsePolicy(text.ok, file, passed, (own) => baseOf(own, [path], { shipped, files: bases }));
  return { ...loaded, text: text.ok, bases };
}

/** The same for text at hand. Pure, but for what it adds to `passed`. */
export function parsePolicy(
  text: string,
  file: string,
  passed = new PassedRules(),
  findBase: FindBase = noBase,
): PolicyLoad {
  const read = readOwn(text, file);
  if ("problems" in read) return read;
  const { own } = read;
  const base = own.document.extends === undefined ? null : findBase(own);
  if (base !== null && !("document" in base)) return { problems: base };
  const { document, at } = base === null ? own : extended(base, own);
  const compiled = compilePolicy(document, { file, at, base }, passed);
  if ("ok" in compiled) return compiled;
  return { problems: compiled.problems.map(({ path, message }) => problemAt(at, path, message)) };
}

function noBase({ at, document }: OwnFile): readonly PolicyProblem[] {
  return [problemAt(at, ["extends"], `There is no '${document.extends}' here that it could start from`)];
}
