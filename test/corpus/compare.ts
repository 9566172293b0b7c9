import {
  HOME_MARK,
  UNKNOWN_MARK,
  type CommandWord,
  type ReadCommand,
} from "../../broker/policy/words/command.ts";
import type { Executed } from "./closed-root.ts";
import type { CorpusCommand } from "./commands.ts";

export const CORPUS_HOME = "/home/ann";

/** What both shells ran of one command. */
export type ExecutedByBoth = { readonly dash: Executed; readonly bash: Executed };

/** `executed.json`, as `record.mjs` writes it. */
export type Recorded = { readonly commands: Readonly<Record<string, ExecutedByBoth>> };

type Reader = (text: string, shell: "sh" | "bash") => ReadCommand;

/** Sentences: where a reading of the command and what the shells ran of it, or its mark in the corpus, do not agree. */
export function shortcomings(
  command: CorpusCommand,
  executed: { readonly dash: Executed | undefined; readonly bash: Executed | undefined } | null,
  read: Reader,
): readonly string[] {
  const { dash, bash } = executed ?? {};
  if (dash === undefined || bash === undefined) return [`'${command.text}' was never run`];
  const sh = read(command.text, "sh");
  return [
    ...inOneReading(command, "sh, run by dash", sh, command.bashOnly ? NOTHING : dash),
    ...inOneReading(command, "sh, run by bash", sh, bash),
    ...inOneReading(command, "bash", read(command.text, "bash"), bash),
    ...(command.expectation === "opaque" && sh.opaque.length === 0
      ? [`'${command.text}' is not opaque`]
      : []),
  ];
}

const NOTHING: Executed = { calls: [], missing: [] };

function inOneReading(command: CorpusCommand, how: string, read: ReadCommand, executed: Executed): string[] {
  const [spot] = read.opaque;
  if (command.expectation !== "opaque" && spot !== undefined)
    return [`'${command.text}' as ${how} is opaque: ${spot.reason}`];
  if (spot !== undefined || command.expectation === "language") return [];
  return missed(read, executed).map((call) => `'${command.text}' as ${how} ran ${JSON.stringify(call)}`);
}

/** What a shell ran and no command of the reading accounts for; of programs that are not there only the name is known. */
export function missed(read: ReadCommand, executed: Executed): readonly (readonly string[])[] {
  const unread = executed.calls.filter(
    (call) => !isInternal(call) && !read.fragments.some(({ words }) => isCall(words, call)),
  );
  const absent = executed.missing.filter(
    (name) => !read.fragments.some(({ words: [program] }) => program !== undefined && wordIs(program, name)),
  );
  return [...unread, ...absent.map((name) => [name])];
}

/**
 * How the real programs of the corpus do their work, which nobody asked of them: git's own programs, gzip for `tar -z`,
 * ssh for an address, and the shell to which git, tar and others hand the text that they are given: what that shell runs
 * is recorded, and must be read, by itself.
 */
function isInternal([program = "", option]: readonly string[]): boolean {
  const isHelper =
    program.startsWith("/usr/lib/git-core/") || program === "gzip" || program === "/usr/bin/ssh";
  return isHelper || (/^(\/bin\/)?sh$/.test(program) && option === "-c");
}

/** A program that another one looked for on PATH is called by its whole path. */
function isCall(words: readonly CommandWord[], call: readonly string[]): boolean {
  const [program = "", ...others] = call;
  return wordsAre(words, call) || wordsAre(words, [program.replace(/^\/usr\/bin\//, ""), ...others]);
}

/** Do these words become that call? Literal words must be equal; others stand for what they may become. */
function wordsAre(words: readonly CommandWord[], call: readonly string[]): boolean {
  const [word, ...others] = words;
  if (word === undefined) return call.length === 0;
  const least = word.vanishes === true ? 0 : 1;
  const most = word.kind === "literal" ? 1 : call.length;
  for (let count = least; count <= most; count += 1) {
    if (count > 0 && !wordIs(word, call[count - 1])) return false;
    if (wordsAre(others, call.slice(count))) return true;
  }
  return false;
}

function wordIs(word: CommandWord, text: string | undefined): boolean {
  if (text === undefined) return false;
  const wanted = word.text.replaceAll(HOME_MARK, CORPUS_HOME);
  if (word.kind === "literal") return wanted === text;
  // A word of several (`a$x` with blanks in it) ends anywhere: only its beginning is held to.
  const [head = ""] = wanted.split(word.kind === "glob" ? /[*?[]/ : UNKNOWN_MARK);
  return word.vanishes === true || text.startsWith(head) || word.kind === "dynamic";
}
