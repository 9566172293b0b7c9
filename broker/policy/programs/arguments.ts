import type { CommandWord } from "../words/command.ts";
import type { ProgramFacts } from "./program-facts.ts";

/** Options by their plain name (`-r`, `--no-preserve-root`, `-delete`) and operands, in order. */
export interface Arguments {
  readonly options: ReadonlyMap<string, CommandWord | null>;
  /** Options guessed from a shortened word with several possible meanings: an allowing rule ignores guessed options. */
  readonly guessed: ReadonlySet<string>;
  readonly operands: readonly Operand[];
  /** A `--` ended the options. */
  readonly ended: boolean;
}

export interface Operand {
  readonly word: CommandWord;
  /** Follows an unknown option: may be the option's value. */
  readonly maybeValue: boolean;
}

/** Sorts the words after the program into options and operands. Patterns and commands share the function, to be read alike. */
export function sortArguments(words: readonly CommandWord[], facts: ProgramFacts): Arguments {
  const options = new Map<string, CommandWord | null>();
  const operands: Operand[] = [];
  const guessed = new Set<string>();
  let ended = false;
  let afterUnknown = false;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at];
    if (word === undefined) break;
    const isOption = !ended && word.text.length > 1 && word.text.startsWith("-");
    const equals = facts.equalsOptions === true ? word.text.indexOf("=") : -1;
    if (equals > 0) options.set(word.text.slice(0, equals), { ...word, text: word.text.slice(equals + 1) });
    else if (!isOption) {
      operands.push({ word, maybeValue: afterUnknown });
      afterUnknown = false;
    } else if (word.text === "--") ended = true;
    else {
      const read = readOption(word, words[at + 1], facts);
      for (const [name, value] of read.found) {
        options.set(name, value);
        if (read.guessed) guessed.add(name);
      }
      at += read.takesNext ? 1 : 0;
      afterUnknown = read.unknown;
    }
  }
  return { options, guessed, operands: plainOperands(operands, facts), ended };
}

interface ReadOption {
  readonly found: readonly (readonly [string, CommandWord | null])[];
  readonly takesNext: boolean;
  readonly unknown: boolean;
  /** The word may stand for any of the found options. */
  readonly guessed: boolean;
}

function readOption(word: CommandWord, next: CommandWord | undefined, facts: ProgramFacts): ReadOption {
  if (word.text.startsWith("--") || facts.singleDash === true) return readLong(word, next, facts);
  return readLetters(word, next, facts);
}

function readLong(word: CommandWord, next: CommandWord | undefined, facts: ProgramFacts): ReadOption {
  const dashes = facts.singleDash === true ? 1 : 2;
  const equals = word.text.indexOf("=");
  const written = word.text.slice(word.text.startsWith("--") ? 2 : dashes, equals < 0 ? undefined : equals);
  const attached = equals < 0 ? null : { ...word, text: word.text.slice(equals + 1) };
  const readings = fullNames(written, facts).map((full) => {
    const letter = facts.longs?.[full];
    const takes =
      facts.longValues?.includes(full) === true ||
      (letter !== undefined && facts.shortValues?.includes(letter) === true);
    const name = letter === undefined ? `${"-".repeat(dashes)}${full}` : `-${letter}`;
    const known = letter !== undefined || facts.otherLongs?.includes(full) === true;
    return { name, takes, known };
  });
  const guessed = readings.length > 1;
  const takesNext = attached === null && !guessed && readings.some(({ takes }) => takes);
  return {
    found: readings.map(({ name, takes }) => [name, attached ?? (takes ? (next ?? null) : null)]),
    takesNext,
    unknown: attached === null && !takesNext && (guessed || !readings.some(({ known }) => known)),
    guessed,
  };
}

/**
 * Returns the long options that a shortened name may stand for: getopt accepts an unambiguous beginning. A beginning ambiguous
 * here may be unambiguous to the program, whose subcommands have options of their own (`git clean --forc`): all candidates count.
 */
function fullNames(written: string, facts: ProgramFacts): readonly string[] {
  if (facts.singleDash === true || written === "") return [written];
  const known = [...Object.keys(facts.longs ?? {}), ...(facts.otherLongs ?? []), ...(facts.longValues ?? [])];
  if (known.includes(written)) return [written];
  const candidates = new Set(known.filter((name) => name.startsWith(written)));
  return candidates.size === 0 ? [written] : [...candidates];
}

function readLetters(word: CommandWord, next: CommandWord | undefined, facts: ProgramFacts): ReadOption {
  const found: [string, CommandWord | null][] = [];
  for (let at = 1; at < word.text.length; at += 1) {
    const letter = word.text[at] ?? "";
    const name = `-${facts.sameLetters?.[letter] ?? letter}`;
    if (facts.shortValues?.includes(letter) !== true) {
      found.push([name, null]);
      continue;
    }
    const attached = word.text.slice(at + 1);
    found.push([name, attached === "" ? (next ?? null) : { ...word, text: attached }]);
    return { found, takesNext: attached === "", unknown: false, guessed: false };
  }
  const known = (name: string): boolean => Object.values(facts.longs ?? {}).includes(name.slice(1));
  return {
    found,
    takesNext: false,
    guessed: false,
    unknown:
      (facts.eachFrom === undefined || facts.otherValues === true) && !found.every(([name]) => known(name)),
  };
}

function plainOperands(operands: readonly Operand[], facts: ProgramFacts): readonly Operand[] {
  const skip =
    facts.skipPrefix !== undefined && operands[0]?.word.text.startsWith(facts.skipPrefix) === true ? 1 : 0;
  const [first, ...others] = operands.slice(skip);
  if (first === undefined) return [];
  return [{ ...first, word: plainFirst(first.word, facts) }, ...others];
}

function plainFirst(word: CommandWord, facts: ProgramFacts): CommandWord {
  const subcommands = facts.subcommands ?? {};
  const same = Object.hasOwn(subcommands, word.text) ? subcommands[word.text] : undefined;
  if (same !== undefined) return { ...word, text: same };
  return facts.octal === true && /^0+[0-7]{3}$/.test(word.text)
    ? { ...word, text: word.text.slice(-3) }
    : word;
}
