import { basename } from "node:path";
import { type BaseFile, baseOf } from "./bases.ts";
import { compilePolicy } from "./compile.ts";
import type { PolicyLoad, PolicyMemory, PolicyProblem } from "./decision.ts";
import { extended, type OwnFile, type Written } from "./extends.ts";
import { problem, problemAt, readOwn } from "./read-own.ts";
import { readText } from "./read-text.ts";

export { MAX_POLICY_BYTES } from "./read-text.ts";

/** The policy that a file's `extends` names, or what is wrong with it. */
export type FindBase = (own: OwnFile) => Written | readonly PolicyProblem[];

/**
 * Reads, validates and compiles a policy file and the policies that it starts from. Bad content and unreadable files come back as
 * problems. In one go, so that no command is decided between the old policy and the new one.
 *
 * @param path absolute path; its last part is the file name in `rule.source` and in problems.
 * @param shipped the folder of the shipped policies, which `extends` may name.
 * @param memory what the last reading of this file left: the same answer, in less time.
 */
export function loadPolicy(path: string, shipped: string, memory = noMemory()): PolicyLoad {
  const file = basename(path);
  const text = readText(path);
  if ("why" in text)
    return {
      problems: [problem({ file, line: 0, column: 0 }, [], text.why)],
      memory: { ...memory, bases: [] },
    };
  const files: BaseFile[] = [];
  const bases = { shipped, before: memory.bases, files };
  const loaded = parsePolicy(text.ok, file, memory, (own) => baseOf(own, [path], bases));
  return { ...loaded, memory: { ...loaded.memory, bases: files } };
}

/** The same for text at hand. Pure. */
export function parsePolicy(
  text: string,
  file: string,
  memory = noMemory(),
  findBase: FindBase = noBase,
): PolicyLoad {
  const read = readOwn(text, file, memory.yaml);
  const failed = (problems: readonly PolicyProblem[]): PolicyLoad => ({
    problems,
    memory: { ...memory, yaml: memory.yaml ?? read.yaml },
  });
  if ("problems" in read) return failed(read.problems);
  const { own, yaml } = read;
  const base = own.document.extends === undefined ? null : findBase(own);
  if (base !== null && !("document" in base)) return failed(base);
  const { document, at } = base === null ? own : extended(base, own);
  const compiled = compilePolicy(document, { file, at, base }, memory);
  if ("problems" in compiled)
    return failed(compiled.problems.map(({ path, message }) => problemAt(at, path, message)));
  return { ...compiled, memory: { ...memory, yaml, policy: compiled.ok } };
}

function noBase({ at, document }: OwnFile): readonly PolicyProblem[] {
  return [problemAt(at, ["extends"], `There is no '${document.extends}' here that it could start from`)];
}

function noMemory(): PolicyMemory {
  return {
    yaml: null,
    policy: null,
    bases: [],
    texts: new WeakMap(),
    known: { refusing: new Map(), allowing: new Map() },
  };
}
