import type { ReadCommand } from "../../broker/policy/words/command.ts";
import { readShell } from "../../broker/policy/index.ts";
import { ClosedRoot, type Shell } from "./closed-root.ts";
import { missed } from "./compare.ts";
import { fuzzText, NAMES } from "./fuzz-texts.ts";

export type Miss = {
  readonly text: string;
  readonly shell: Shell;
  /** How it was read. */
  readonly language: "sh" | "bash";
  readonly calls: readonly (readonly string[])[];
};

export type FuzzResult = {
  readonly texts: number;
  /** Texts of which some shell started a program. */
  readonly ran: number;
  /** Texts that the reader says it cannot know. */
  readonly opaque: number;
  readonly misses: readonly Miss[];
};

/**
 * Runs texts `first` to `first + count - 1` of a seed in dash and bash, and compares the programs that start with what the
 * reader names: each must be there, or the text opaque. What looks like a miss is run once more by itself.
 */
export function fuzz(root: ClosedRoot, seed: number, first: number, count: number): FuzzResult {
  const texts = Array.from({ length: count }, (_, offset) => fuzzText(seed, first + offset));
  return compareTexts(
    root,
    texts.filter((text) => !text.includes("\0")),
  );
}

type Reader = (text: string, language?: Miss["language"]) => ReadCommand;

export function compareTexts(
  root: ClosedRoot,
  texts: readonly string[],
  read: Reader = readShell,
): FuzzResult {
  const misses: Miss[] = [];
  // A text is asked about up to four times.
  const reads = new Map<string, ReadCommand>();
  const readOnce: Reader = (text, language = "sh") => {
    const key = language + text;
    const known = reads.get(key) ?? read(text, language);
    reads.set(key, known);
    return known;
  };
  const opaque = texts.filter((text) => readOnce(text).opaque.length > 0).length;
  const ran = new Set<string>();
  for (const shell of ["dash", "bash"] as const) {
    const calls = root.runMany(shell, texts);
    const suspects = texts.filter((text, index) => {
      const made = calls[index] ?? [];
      if (made.length > 0) ran.add(text);
      return missesOf(text, shell, made, readOnce).length > 0;
    });
    const [again = []] = suspects.length === 0 ? [] : [root.run(shell, suspects)];
    for (const [index, text] of suspects.entries())
      misses.push(...missesOf(text, shell, again[index]?.calls ?? [], readOnce));
  }
  return { texts: texts.length, ran: ran.size, opaque, misses };
}

/** What ran and is not read, in each language that this shell may be asked for. */
function missesOf(
  text: string,
  shell: Shell,
  calls: readonly (readonly string[])[],
  reader: Reader,
): readonly Miss[] {
  if (calls.length === 0) return [];
  const languages = shell === "bash" ? (["sh", "bash"] as const) : (["sh"] as const);
  return languages.flatMap((language) => {
    const read = reader(text, language);
    if (read.opaque.length > 0) return [];
    const unread = missed(read, { calls, missing: [] });
    return unread.length === 0 ? [] : [{ text, shell, language, calls: unread }];
  });
}

/** A sentence instead, where this machine cannot make a closed root. */
export function fuzzRoot(): ClosedRoot | string {
  return ClosedRoot.make(NAMES);
}
