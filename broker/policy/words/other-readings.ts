/** The readings of a command whose words depend on values that are only known when it runs. */
import { type CommandWord, UNKNOWN_MARK } from "./command.ts";

type Words = readonly CommandWord[];

/** Readings of one command; beyond, a word with operands may be any option. */
const MOST_READINGS = 32;

/**
 * Returns the words without those that may vanish, and with `${x}-c` as the option that it is where x is not set; then the readings
 * in which operands count: of all words together, and of each alone, among words without theirs and among words with them.
 */
export function otherReadings(words: Words): readonly Words[] {
  const short = words.flatMap(withoutValues);
  const isOther = short.length < words.length || short.some((word, at) => word !== words[at]);
  const others = isOther ? [short] : [];
  const choices = words.flatMap((word) => (word.otherwise ?? []).map((reading) => ({ word, reading })));
  if (choices.length === 0) return others;
  if (choices.length * 2 > MOST_READINGS) return [...others, words.flatMap(withAnyOption)];
  const alone = choices.flatMap(({ word: one, reading }) =>
    [withoutValues, withOperands].map((others) =>
      words.flatMap((word) => (word === one ? reading : others(word))),
    ),
  );
  return [...others, words.flatMap(withOperands), ...alone];
}

function withoutValues(word: CommandWord): Words {
  return word.vanishes === true ? [] : [withoutUnknown(word)];
}

function withOperands(word: CommandWord): Words {
  return word.otherwise?.[0] ?? [withoutUnknown(word)];
}

function withAnyOption(word: CommandWord): Words {
  if (word.otherwise === undefined) return [withoutUnknown(word)];
  return [{ kind: "dynamic", text: `-${UNKNOWN_MARK}`, raw: word.raw }];
}

function withoutUnknown(word: CommandWord): CommandWord {
  if (word.kind !== "dynamic" || !word.text.startsWith(UNKNOWN_MARK)) return word;
  const text = word.text.replaceAll(UNKNOWN_MARK, "");
  return /^[-+]/.test(text) ? { kind: "literal", text, raw: word.raw } : word;
}
