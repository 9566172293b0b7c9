import { isIsolated, type Job } from "../model/job.ts";
import type { FailureTold, WorldLacks } from "../programs/world-lacks.ts";
import { reasonOf, type WriteRules } from "./refused-writes.ts";
import type { Ran } from "../worlds/run.ts";
import { resolve } from "node:path";
import { deniedBy } from "../policy/files/path-denials.ts";
import { fileLists } from "../policy/files/file-lists.ts";

type Known = {
  readonly lacks: WorldLacks;
  readonly writes: WriteRules;
  /** Something else was refused, and is told. */
  readonly explained: boolean;
};

/** What is told of a command, or a program, that failed or could not write, beside what was refused with a line of its own. */
export function whyFailed(job: Job, ran: Ran, { lacks, writes, explained }: Known): readonly FailureTold[] {
  const { ending, stderr } = ran;
  const failed = ending.kind === "signalled" || (ending.kind === "exited" && ending.code !== 0);
  const words = { stderr: stderr.bytes(), cwd: job.place.cwd, failed, isolated: isIsolated(job) };
  const paths = explainErrors(words, writes);
  const lacking = lacks.told({
    argv: job.argv,
    failed,
    explained: explained || paths.length > 0,
    builtins: job.decision.builtins.map(({ fragment }) => fragment),
    stderr: () => words.stderr.toString("latin1"),
  });
  return [...paths.map((message) => ({ program: null, message })), ...lacking];
}

/**
 * What a command says of a path, explained by the lists of its policies. No call that opens a file is told: reads would cost a
 * notification each, and so would every write of an isolated command, which would take twice as long over many files. So a hidden name,
 * and a write that an isolated command may not make, are told where its own standard error names the path: the name if the command
 * failed, since programs look for much that is not there; the write in any case. These are the command's words: they become a notice for
 * whoever reads them, and no line of the trace.
 */

/** Paths that are looked up in the lists, and what is read of an output for them, in bytes: a lookup takes a part of a millisecond. */
const MAX_PATHS = 32;
const MAX_BYTES = 64 * 1024;

/** `cat: a b: No such file or directory`, `touch: cannot touch 'a': …`, `sh: 1: cannot create a: …`, and as Node and Python say it. */
const WRITTEN: readonly RegExp[] = [
  /['"`‘]([^'"`’\n]+)['"`’]: Read-only file system$/,
  /: (?:cannot create |cannot open )?([^:\n]+): Read-only file system$/,
  /\bEROFS: read-only file system, [a-z]+ '([^'\n]+)'/,
  /\bRead-only file system: '([^'\n]+)'/,
];
const READ: readonly RegExp[] = [
  /['"`‘]([^'"`’\n]+)['"`’](?: for reading)?: (?:No such file or directory|Permission denied)$/,
  /: (?:cannot open |can't open )?([^:\n]+): (?:No such file or directory|Permission denied|No such file)$/,
  /\b(?:ENOENT|EACCES): [a-z ]+, [a-z]+ '([^'\n]+)'/,
  /\b(?:No such file or directory|Permission denied): '([^'\n]+)'/,
];

type SaidWords = {
  readonly stderr: Buffer;
  readonly cwd: string;
  readonly failed: boolean;
  /** Writes that were refused are not told in another way. */
  readonly isolated: boolean;
};

/** A sentence for each path, at most {@link MAX_PATHS}. */
export function explainErrors(
  { stderr, cwd, failed, isolated }: SaidWords,
  rules: WriteRules,
): readonly string[] {
  if (!failed && !isolated) return [];
  const told = new Map<string, string | undefined>();
  for (const line of stderr.subarray(0, MAX_BYTES).toString("utf8").split("\n")) {
    if (told.size >= MAX_PATHS) break;
    const written = isolated ? pathIn(line, WRITTEN, cwd) : undefined;
    const path = written ?? (failed ? pathIn(line, READ, cwd) : undefined);
    if (path === undefined || told.has(path)) continue;
    told.set(path, written === undefined ? hiddenBy(path, rules) : notWritten(path, rules));
  }
  return [...told.values()].filter((sentence) => sentence !== undefined);
}

function notWritten(path: string, rules: WriteRules): string {
  return `'${path}' was not written: ${reasonOf(path, rules)}`;
}

function pathIn(line: string, patterns: readonly RegExp[], cwd: string): string | undefined {
  const found = patterns.map((pattern) => pattern.exec(line)?.[1]).find((one) => one !== undefined);
  return found === undefined || found.includes("\0") ? undefined : resolve(cwd, found);
}

/** Whether anything stands there is not said: a hidden name is not there, existing or not. */
function hiddenBy(path: string, rules: WriteRules): string | undefined {
  for (const { id, document, rules: set } of rules.policies) {
    const pattern = deniedBy(path, fileLists(document).deny_read, rules);
    if (pattern !== undefined)
      return `'${path}' is hidden, whether it exists or not: '${pattern}' stands in fs.deny_read of policy '${id}' (${set.sources.denyRead})`;
  }
  return undefined;
}
