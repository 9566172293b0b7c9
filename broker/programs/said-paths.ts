/** Reads from the error messages of programs which paths they could not write, or did not find. Pure. */
import { normalize, resolve } from "node:path";

/**
 * `cat: a b: No such file or directory`, `touch: cannot touch 'a': …`, `sh: 1: cannot create a: …`, and the forms of tar, of rsync,
 * openssl and awk, of wget and Perl, of Node, Python and Ruby.
 */
const WRITTEN: readonly RegExp[] = [
  /['"`‘]([^'"`’\n]+)['"`’]; unable to remove target: Read-only file system$/,
  /['"`‘]([^'"`’\n]+)['"`’]: Read-only file system$/,
  /: (\/?[^:\n]+): Cannot [a-z ]+: Read-only file system$/,
  /['"`‘]([^'"`’\n]+)['"`’] (?:failed|for (?:writing|output))\b.*\bRead-only file system\b/,
  /: (?:cannot create |cannot open |could not (?:lock|write) config file )?([^:\n]+): Read-only file system$/,
  /\bRead-only file system @ \w+ - ([^\n]+?)(?: \(Errno::EROFS\))?$/,
  /\bEROFS: read-only file system, [a-z]+ '[^'\n]+' -> '([^'\n]+)'/,
  /\bEROFS: read-only file system, [a-z]+ '([^'\n]+)'/,
  /\bRead-only file system: '([^'\n]+)'/,
];
/** Cargo's messages name the path, and the reason lines later, behind `Caused by:`. */
const NAMED_BEFORE =
  /^(?:error: |warning: )?failed to (?:open|create|write)(?: file)?:? [`'"]?(\/[^`'"]+)[`'"]?$/;
const REASON_ALONE = /^\s+Read-only file system\b/;
/** zip's the other way round. */
const NAMED_AFTER = /\bCould not create output file \((\/[^)\n]+)\)$/;
const LINES_BEFORE = 3;

/** Longer lines name no path, and the time of a pattern can grow with the square of a line. */
export const MAX_LINE = 8192;
const READ: readonly RegExp[] = [
  // ssh and ssh-keygen, also behind `git commit -S`.
  /\b(?:public key|Identity file) (\/[^:\n]+?)(?: not accessible)?: No such file or directory[.?]?$/,
  /['"`‘]([^'"`’\n]+)['"`’](?: for reading)?: (?:\[Errno \d+\] )?(?:No such file or directory|Permission denied)$/,
  /\bCannot find module '(\/[^'\n]+)'$/,
  /: (?:cannot open |can't open )?([^:\n]+): (?:No such file or directory|Permission denied|No such file)$/,
  /\b(?:ENOENT|EACCES): [a-z ]+, [a-z]+ '([^'\n]+)'/,
  /\b(?:No such file or directory|Permission denied): '([^'\n]+)'/,
  // git fetch and git clone.
  /^fatal: (?:repository )?'([^'\n]+)' (?:does not exist|does not appear to be a git repository)$/,
];

/** Node's mkdir says so with `recursive` where the kernel says EROFS (npm install -g). */
export const MASKED = /\bENOENT: no such file or directory, mkdir '([^'\n]+)'/;

/** Returns the path, absolute, that the program of a line says it could not write on a read-only file system. */
export function writtenIn(lines: readonly string[], at: number, cwd: string): string | undefined {
  const line = lines[at] ?? "";
  return barePath(line) ?? pathIn(line, WRITTEN, cwd) ?? namedBefore(lines, at, cwd);
}

/** Returns the path, absolute, that the program of a line says is missing, or closed to it. */
export function missingIn(line: string, cwd: string): string | undefined {
  return pathIn(line, READ, cwd);
}

const REFUSED = ": Read-only file system";

/** `/new: …` and `fatal: cannot mkdir /new: …`: the absolute path at the end of a sentence, without quotes. */
function barePath(line: string): string | undefined {
  if (!line.endsWith(REFUSED)) return undefined;
  const text = line.slice(0, -REFUSED.length);
  const clause = ` ${text.slice(text.lastIndexOf(":") + 1).trim()}`;
  const at = clause.indexOf(" /");
  return at < 0 || /['"`’]$|\0/.test(clause) ? undefined : normalize(clause.slice(at + 1));
}

function pathIn(line: string, patterns: readonly RegExp[], cwd: string): string | undefined {
  const found = patterns.map((pattern) => pattern.exec(line)?.[1]).find((one) => one !== undefined);
  return found === undefined || found.includes("\0") ? undefined : resolve(cwd, found);
}

/** Returns the path of an earlier line, where this one says only why it was not written, or of this one, where an earlier one says why. */
function namedBefore(lines: readonly string[], at: number, cwd: string): string | undefined {
  const line = lines[at] ?? "";
  const before = lines.slice(Math.max(0, at - LINES_BEFORE), at).filter((each) => each.length <= MAX_LINE);
  if (before.some((each) => each.endsWith("Read-only file system"))) {
    const after = pathIn(line, [NAMED_AFTER], cwd);
    if (after !== undefined) return after;
  }
  if (!REASON_ALONE.test(line)) return undefined;
  return before.map((each) => pathIn(each, [NAMED_BEFORE], cwd)).find((path) => path !== undefined);
}
