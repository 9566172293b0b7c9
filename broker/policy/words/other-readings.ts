/** The readings of a command whose words depend on values that are only known when it runs. */
import { type CommandWord, UNKNOWN_MARK } from "./command.ts";

/** Readings of one command; beyond, a word with operands may be any option. */
const MOST_READINGS = 32;

/**
 * The words without those that may vanish, and with `${x}-c` as the option that it is where x is not set; and the readings in which
 * operands count: of all words together, and of each alone.
 */
export function otherReadings(words: readonly CommandWord[]): readonly (readonly CommandWord[])[] {
  const short = words.filter((word) => word.vanishes !== true).map(withoutUnknown);
  const isOther = short.length < words.length || short.some((word, at) => word !== words[at]);
  const others = isOther ? [short] : [];
  const withOperands = words.filter(({ otherwise }) => otherwise !== undefined);
  if (withOperands.length === 0) return others;
  const count = withOperands.reduce((sum, { otherwise = [] }) => sum + otherwise.length, 0);
  const isMany = count * 2 > MOST_READINGS;
  const full = (word: CommandWord): readonly CommandWord[] =>
    word.otherwise === undefined
      ? [withoutUnknown(word)]
      : isMany
        ? [anyOption(word)]
        : (word.otherwise[0] ?? []);
  const all = words.flatMap(full);
  if (isMany) return [...others, all];
  const alone = withOperands.flatMap((one) =>
    (one.otherwise ?? []).flatMap((reading) => [
      words.flatMap((word) =>
        word === one ? reading : word.vanishes === true ? [] : [withoutUnknown(word)],
      ),
      ...(withOperands.length > 1 ? [words.flatMap((word) => (word === one ? reading : full(word)))] : []),
    ]),
  );
  return [...others, all, ...alone];
}

function anyOption({ raw }: CommandWord): CommandWord {
  return { kind: "dynamic", text: `-${UNKNOWN_MARK}`, raw };
}

function withoutUnknown(word: CommandWord): CommandWord {
  if (word.kind !== "dynamic" || !word.text.startsWith(UNKNOWN_MARK)) return word;
  const text = word.text.replaceAll(UNKNOWN_MARK, "");
  return /^[-+]/.test(text) ? { kind: "literal", text, raw: word.raw } : word;
}
