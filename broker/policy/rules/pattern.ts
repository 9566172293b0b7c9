import { type Arguments, sortArguments } from "../programs/arguments.ts";
import { type CommandWord, HOME_MARK } from "../words/command.ts";
import { baseName } from "../words/inner.ts";
import type { ProgramFacts } from "../programs/program-facts.ts";
import { factsOf, plainName } from "../programs/programs.ts";

/** Stands for the project folder inside a pattern's words. */
export const PROJECT_MARK = "\0P";

/** A stage of a pattern: a program and its words. Most patterns have a single stage. */
export interface StagePattern {
  readonly program: string;
  /** The name to index by; null when the program word has a `*`. */
  readonly programName: string | null;
  /** The program word is a plain name: no `*`, no folder. */
  readonly bare: boolean;
  /** `sh` after a `|`: any shell. */
  readonly anyShell: boolean;
  /** The last word is `*`: any number of further words, or no words. */
  readonly rest: boolean;
  /** Words like `-o*`, compared with the option words as written. */
  readonly optionGlobs: readonly string[];
  readonly words: readonly CommandWord[];
  /** Words sorted by the named program's own options. */
  readonly facts: ProgramFacts;
  readonly own: Arguments;
  /** Words sorted by the options of further programs that match the pattern, by `*` or by a resolved name. */
  readonly others: Map<ProgramFacts, Arguments>;
}

/** Cuts a pattern into stages and words. Quotes keep blanks in a word; a lone `|` is a pipe. */
export function readPattern(pattern: string): StagePattern[] {
  const stages: string[][] = [[]];
  for (const word of patternWords(pattern)) {
    if (word === "|") stages.push([]);
    else stages.at(-1)?.push(word);
  }
  return stages.map((words, index) => readStage(words, index > 0));
}

/** Returns the words of a pattern, without quotes. */
export function patternWords(pattern: string): string[] {
  const words = pattern.match(/(?:[^\s"']|"[^"]*"|'[^']*'|["'])+/g) ?? [];
  return words.map((word) =>
    /^(?:[^"']|"[^"]*"|'[^']*')*$/.test(word) ? word.replaceAll(/["']/g, "") : word,
  );
}

function readStage(texts: readonly string[], afterPipe: boolean): StagePattern {
  const [program = "*", ...others] = texts;
  const rest = (texts.length === 1 && program === "*") || others.at(-1) === "*";
  const args = others.at(-1) === "*" ? others.slice(0, -1) : others;
  const isOptionGlob = (text: string): boolean => /^-.*\*/.test(text) && !/^--[^*]+=\*$/.test(text);
  const words = args.filter((text) => !isOptionGlob(text)).map(patternWord);
  const programName = program.includes("*") ? null : plainName(baseName(program));
  const facts = factsOf(programName ?? "");
  const own = sortArguments(words, facts);
  return {
    program: withMarks(program),
    programName,
    bare: programName !== null && !/[/~$]/.test(program),
    anyShell: afterPipe && program === "sh",
    rest,
    optionGlobs: args.filter(isOptionGlob),
    words,
    facts,
    own,
    others: new Map(),
  };
}

/** `--output=*` asks for the option with any value. */
function patternWord(text: string): CommandWord {
  const plain = /^--[^*]+=\*$/.test(text) ? text.slice(0, -2) : text;
  return { kind: plain.includes("*") ? "glob" : "literal", text: withMarks(plain), raw: text };
}

function withMarks(text: string): string {
  return text
    .replace(/^~(?=\/|$)/, HOME_MARK)
    .replace(/^\$(HOME|\{HOME\})(?=\/|$)/, HOME_MARK)
    .replace(/^\$(PROJECT|\{PROJECT\})(?=\/|$)/, PROJECT_MARK);
}

export function sortedFor(stage: StagePattern, facts: ProgramFacts): Arguments {
  if (facts === stage.facts) return stage.own;
  const known = stage.others.get(facts);
  if (known !== undefined) return known;
  const sorted = sortArguments(stage.words, facts);
  stage.others.set(facts, sorted);
  return sorted;
}

/** Matches a text; `*` stands for any characters. Searches each part between two stars once, behind the previous part. */
export function globMatches(pattern: string, text: string): boolean {
  const first = pattern.indexOf("*");
  if (first < 0) return pattern === text;
  const last = pattern.lastIndexOf("*");
  const end = text.length - (pattern.length - last - 1);
  if (end < first || !text.startsWith(pattern.slice(0, first))) return false;
  if (!text.endsWith(pattern.slice(last + 1))) return false;
  let at = first;
  for (const part of pattern.slice(first, last).split("*")) {
    const found = text.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= end;
}
