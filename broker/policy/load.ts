import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { basename } from "node:path";
import { validatePolicyDocument } from "../../schemas/generated/validators.js";
import { describeErrors } from "../../schemas/validation-errors.ts";
import { compilePolicy } from "./compile.ts";
import type { PolicyLoad, PolicyMemory, PolicyProblem } from "./decision.ts";
import { readYaml, type YamlFile } from "./yaml-file.ts";

/** 256 KiB: a policy that people can review is far smaller. */
export const MAX_POLICY_BYTES = 256 * 1024;

/**
 * Reads, validates and compiles a policy file. Bad content and unreadable files come back as problems. In one go,
 * so that no command is decided between the old policy and the new one.
 *
 * @param path absolute path; its last part is the file name in `rule.source` and in problems.
 * @param memory what the last reading of this file left: the same answer, in less time.
 */
export function loadPolicy(path: string, memory = noMemory()): PolicyLoad {
  const file = basename(path);
  const unread = (why: string): PolicyLoad => ({ problems: [problem(file, 0, 0, [], why)], memory });
  try {
    const bytes = readBounded(path);
    if (bytes.length > MAX_POLICY_BYTES)
      return unread(`A policy has at most ${MAX_POLICY_BYTES} bytes, this file has more`);
    return parsePolicy(new TextDecoder("utf-8", { fatal: true }).decode(bytes), file, memory);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return unread("It is not UTF-8 text");
    return unread(`Cannot read '${path}': ${code}`);
  }
}

/** The same for text at hand. Pure. */
export function parsePolicy(text: string, file: string, memory = noMemory()): PolicyLoad {
  const yaml = readYaml(text, memory.yaml);
  if ("problems" in yaml) {
    const problems = yaml.problems.map(({ line, column, message }) =>
      problem(file, line, column, [], message),
    );
    return { problems, memory };
  }
  if (!validatePolicyDocument(yaml.value)) {
    const errors = describeErrors(yaml.value, validatePolicyDocument.errors ?? []);
    const problems = errors.map((error) => problemAt(yaml, file, error.pointer, error.message));
    return { problems, memory: { ...memory, yaml: memory.yaml ?? yaml } };
  }
  const places = { file, lineOf: (path: readonly (string | number)[]) => yaml.positionOf(path).line };
  const compiled = compilePolicy(yaml.value, places, memory);
  if ("ok" in compiled) return { ...compiled, memory: { ...memory, yaml, policy: compiled.ok } };
  const problems = compiled.problems.map(({ path, message }) => problemAt(yaml, file, path, message));
  return { problems, memory: { ...memory, yaml: memory.yaml ?? yaml } };
}

function noMemory(): PolicyMemory {
  return {
    yaml: null,
    policy: null,
    texts: new WeakMap(),
    known: { refusing: new Map(), allowing: new Map() },
  };
}

/** At most one byte more than a policy may have. */
function readBounded(path: string): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile())
      throw Object.assign(new Error("it is no plain file"), { code: "it is no plain file" });
    // No more than it takes: what an edit throws away is collected in the middle of some request.
    let buffer = Buffer.allocUnsafe(Math.min(stat.size, MAX_POLICY_BYTES) + 1);
    let length = 0;
    for (;;) {
      const count = readSync(file, buffer, length, buffer.length - length, null);
      length += count;
      if (count === 0 || length > MAX_POLICY_BYTES) return buffer.subarray(0, length);
      // It has grown meanwhile.
      if (length === buffer.length) buffer = Buffer.concat([buffer], MAX_POLICY_BYTES + 1);
    }
  } finally {
    closeSync(file);
  }
}

function problemAt(
  yaml: YamlFile,
  file: string,
  path: readonly (string | number)[],
  message: string,
): PolicyProblem {
  const { line, column } = yaml.positionOf(path);
  return problem(file, line, column, path, message);
}

function problem(
  file: string,
  line: number,
  column: number,
  path: readonly (string | number)[],
  message: string,
): PolicyProblem {
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  return { file, line, column, path: path.join("."), message, text: `${place}: ${message}` };
}
