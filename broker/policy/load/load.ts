import { basename, dirname, join } from "node:path";
import { compilePolicy } from "./compile.ts";
import type { PolicyLoad, PolicyProblem } from "../rules/decision.ts";
import { extended, type OwnFile } from "./extends.ts";
import type { DocumentPath, Written, WrittenAt } from "../rules/written.ts";
import { PassedRules } from "../rules/rule-set.ts";
import { validatePolicyDocument } from "../../../schemas/generated/validators/policy.js";
import { describeErrors } from "../../../schemas/validation-errors.ts";
import { readYaml } from "./yaml-file.ts";
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";

/** Finds the base policy named by a file's `extends`; returns problems if the base cannot be used. */
export type FindBase = (own: OwnFile) => Written | readonly PolicyProblem[];

/** The result for a policy file, with its text and the base files that the result depends on. */
export type LoadedFile = PolicyLoad & { readonly text: string; readonly bases: readonly BaseFile[] };

/**
 * Reads, validates and compiles a policy file and its base policies. Bad content and unreadable files are returned as problems.
 * Synchronous, so that no command is decided between the old policy and the new.
 *
 * @param path absolute path; the last part is the file name in `rule.source` and in problems.
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

/** Like {@link loadPolicy}, for a text. Pure, except for additions to `passed`. */
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
  return [problemAt(at, ["extends"], `Cannot find policy '${document.extends}', which this policy extends`)];
}

/** A base file that a load depends on; a missing candidate is listed too. */
export interface BaseFile {
  readonly path: string;
  /** Taken before reading. */
  readonly identity: string;
  /** Null for an unreadable file. */
  readonly text: string | null;
}

interface Bases {
  /** The folder of the shipped policies. */
  readonly shipped: string;
  /** Filled with every candidate file. */
  readonly files: BaseFile[];
}

/**
 * Finds and reads the base policy of `own`, merged with its own bases.
 *
 * @param below absolute paths: the file of `own`, then the files that extend `own`, nearest first.
 */
function baseOf(
  own: OwnFile,
  below: readonly [string, ...string[]],
  bases: Bases,
): Written | readonly PolicyProblem[] {
  const name = own.document.extends ?? "";
  const wrong = (message: string): readonly PolicyProblem[] => [problemAt(own.at, ["extends"], message)];
  const path = fileOf(name, below[0], bases);
  if (path === undefined)
    return wrong(`Cannot find policy '${name}' beside this file or among the shipped policies`);
  if (below.includes(path)) return wrong(`'${name}' extends this policy itself`);
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

/** Looks beside the naming file, then among the shipped policies. A policy that extends its own name means the shipped policy. */
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

/** The content of a single file, or its problems. */
type ReadOwn = { readonly own: OwnFile } | { readonly problems: readonly PolicyProblem[] };

function readOwn(text: string, file: string): ReadOwn {
  const yaml = readYaml(text);
  if ("problems" in yaml)
    return {
      problems: yaml.problems.map(({ message, ...position }) => problem({ file, ...position }, [], message)),
    };
  const at: Written["at"] = (path) => ({ file, ...yaml.positionOf(path) });
  if (!validatePolicyDocument(yaml.value)) {
    const errors = describeErrors(yaml.value, validatePolicyDocument.errors ?? []);
    return { problems: errors.map(({ pointer, message }) => problemAt(at, pointer, message)) };
  }
  const own = { document: yaml.value, at, only: yaml.only };
  const stray = strayMark(own);
  if (stray === undefined) return { own };
  const message =
    "!only replaces a list of the policy that 'extends' names: it needs 'extends', and cannot be used inside an item of a list";
  return { problems: [problemAt(at, stray.split("."), message)] };
}

/** Returns an `!only` mark without effect: on a list inside a list item, or in a policy without `extends`. */
function strayMark({ document, only }: OwnFile): string | undefined {
  return [...only].find((path) => document.extends === undefined || /\.[0-9]+(?:\.|$)/.test(path));
}

function problemAt(at: Written["at"], path: DocumentPath, message: string): PolicyProblem {
  return problem(at(path), path, message);
}

/** Line 0 stands for the file as a whole. */
function problem({ file, line, column }: WrittenAt, path: DocumentPath, message: string): PolicyProblem {
  const place = line === 0 ? file : `${file}:${line}:${column}`;
  return { file, line, column, path: path.join("."), message, text: `${place}: ${message}` };
}

/** 256 KiB, far more than a policy that people can review. */
export const MAX_POLICY_BYTES = 256 * 1024;

/** Returns the text of a policy file, or a sentence why reading failed. */
function readText(path: string): { readonly ok: string } | { readonly why: string } {
  try {
    const bytes = readBounded(path);
    if (bytes.length > MAX_POLICY_BYTES)
      return { why: `A policy may have at most ${MAX_POLICY_BYTES} bytes; this file has more` };
    return { ok: new TextDecoder("utf-8", { fatal: true }).decode(bytes) };
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
    if (code === "ERR_ENCODING_INVALID_ENCODED_DATA") return { why: "The file is not UTF-8 text" };
    return { why: `Cannot read '${path}': ${code}` };
  }
}

/** Reads at most `MAX_POLICY_BYTES` plus 1 byte. */
function readBounded(path: string): Buffer {
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = fstatSync(file);
    if (!stat.isFile())
      throw Object.assign(new Error("it is not a regular file"), { code: "it is not a regular file" });
    // Allocated by the file's size: the garbage of each reload is collected during some request.
    let buffer = Buffer.allocUnsafe(Math.min(stat.size, MAX_POLICY_BYTES) + 1);
    let length = 0;
    for (;;) {
      const count = readSync(file, buffer, length, buffer.length - length, null);
      length += count;
      if (count === 0 || length > MAX_POLICY_BYTES) return buffer.subarray(0, length);
      // The file has grown meanwhile.
      if (length === buffer.length) buffer = Buffer.concat([buffer], MAX_POLICY_BYTES + 1);
    }
  } finally {
    closeSync(file);
  }
}

/** The identity of a missing file. */
const MISSING = "missing";

/** Joins device, inode, size and both times: an edit in place, a rename and a copy over the file each change some part. */
export function identityOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  return stat === undefined
    ? MISSING
    : `${stat.dev}:${stat.ino}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`;
}
