import { readFileSync } from "node:fs";
import { join } from "node:path";

/** What the reader is expected to make of a command, as marked in its group's title or at its end. */
export type Expectation =
  /** Everything that runs is read, and nothing is opaque. */
  | "read"
  /** Something runs that cannot be known: the reader says so. */
  | "opaque"
  /** Another language starts programs: it is neither read nor opaque. */
  | "language";

export type CorpusCommand = {
  readonly group: string;
  readonly text: string;
  readonly expectation: Expectation;
  /** dash is not asked: it has another idea of the builtin's options. */
  readonly bashOnly: boolean;
};

const FILES = ["spelling.txt", "programs.txt", "daily.txt"];

/** Every command of the corpus, in the order of the files. */
export function corpus(): readonly CorpusCommand[] {
  return FILES.flatMap((name) => readSession(readFileSync(join(import.meta.dirname, name), "utf8"), name));
}

/** `## group [mark]`, `$ command [mark]`, `> its next line`; marks: opaque, language, bash. Throws on any other line. */
function readSession(text: string, file: string): CorpusCommand[] {
  const commands: CorpusCommand[] = [];
  let group = file;
  let usual: Expectation = "read";
  for (const line of text.split("\n")) {
    if (line.startsWith("## ")) ({ text: group, expectation: usual } = marked(line.slice(3), "read"));
    else if (line.startsWith("$ ")) {
      const command = marked(line.slice(2), usual);
      commands.push({ ...command, group, text: withReturns(command.text) });
    } else if (line.startsWith(">")) {
      const last = commands.pop();
      if (last === undefined) throw new Error(`${file}: '${line}' continues nothing`);
      commands.push({ ...last, text: `${last.text}\n${withReturns(line.replace(/^> ?/, ""))}` });
    } else if (line !== "") throw new Error(`${file}: '${line}' is no line of a session`);
  }
  return commands;
}

/** The marks at the end of a line, in any number. */
function marked(
  text: string,
  usual: Expectation,
): { text: string; expectation: Expectation; bashOnly: boolean } {
  const mark = / \[(opaque|language|bash)\]$/.exec(text);
  if (mark === null) return { text, expectation: usual, bashOnly: false };
  const rest = marked(text.slice(0, mark.index), usual);
  return mark[1] === "bash"
    ? { ...rest, bashOnly: true }
    : { ...rest, expectation: mark[1] === "opaque" ? "opaque" : "language" };
}

function withReturns(text: string): string {
  return text.replaceAll("<CR>", "\r");
}
