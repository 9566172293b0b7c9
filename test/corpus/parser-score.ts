import { forEachChild, parse, type SyntaxNode } from "unbash";
import type { CommandWord, SimpleCommand } from "../../broker/policy/words/command.ts";
import { wordsOf } from "../../broker/policy/words/read-command.ts";
import { literalWord } from "../../broker/policy/words/read-word.ts";
import { unwrap } from "../../broker/policy/wrappers/unwrap.ts";
import type { Executed } from "./closed-root.ts";
import { missed } from "./compare.ts";

/** The words of each simple command of a text, null for a word that is not plainly known; throws where it is refused. */
export type Parser = (text: string) => readonly (readonly (string | CommandWord | null)[])[];

const DEEPEST = 8;

/** unbash with the product's own reading of words. */
export function withUnbash(text: string): readonly (readonly CommandWord[])[] {
  const script = parse(text);
  const [error] = script.errors ?? [];
  if (error !== undefined) throw new Error(error.message);
  const found: (readonly CommandWord[])[] = [];
  const open: SyntaxNode[] = [script];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.type === "Command") found.push(wordsOf(node));
    forEachChild(node, (child) => void open.push(child));
  }
  return found;
}

/**
 * What came of one command with this parser, the product's table of wrappers being the same for all: `read`, or what ran
 * was `missed`, or bash ran it and the parser `refused` it.
 */
export function outcomeOf(parser: Parser, text: string, executed: Executed): "read" | "missed" | "refused" {
  try {
    const { commands, opaque } = everything(parser, text, 0);
    const fragments = commands.map(asFragment);
    const read = {
      form: "shell",
      text,
      fragments,
      opaque: [],
      pipelines: [],
      operator: null,
      incomplete: false,
    } as const;
    return opaque || missed(read, executed).length === 0 ? "read" : "missed";
  } catch {
    return executed.calls.length === 0 ? "read" : "refused";
  }
}

function everything(
  parser: Parser,
  text: string,
  depth: number,
): { commands: (readonly CommandWord[])[]; opaque: boolean } {
  const waiting = parser(text).map((words) => words.map(asWord));
  const commands: (readonly CommandWord[])[] = [];
  let opaque = false;
  for (let words = waiting.pop(); words !== undefined; words = waiting.pop()) {
    commands.push(words);
    opaque ||= words[0] !== undefined && words[0].kind !== "literal";
    for (const inner of unwrap(words, "file", "bash")) {
      if (inner.kind === "opaque") opaque = true;
      else if (inner.kind === "words") waiting.push([...inner.words]);
      else if (depth < DEEPEST) {
        const below = everything(parser, inner.text, depth + 1);
        commands.push(...below.commands);
        opaque ||= below.opaque;
      }
    }
  }
  return { commands, opaque };
}

function asWord(word: string | CommandWord | null): CommandWord {
  if (typeof word === "string") return literalWord(word);
  return word ?? { kind: "dynamic", text: "\0?", raw: "?", vanishes: true };
}

function asFragment(words: readonly CommandWord[]): SimpleCommand {
  const place = { start: 0, end: 0, depth: 0, moves: null, inside: [] };
  return { words, assignments: [], redirects: [], fragment: "", ...place };
}
