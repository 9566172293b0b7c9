import { type CommandWord, UNKNOWN_MARK } from "./command.ts";
import { splitEnvString } from "./env-string.ts";
import { type Inner, type ShellLanguage, scriptOf } from "./inner.ts";
import { literalWord } from "./read-word.ts";
import { addedWords, endsInAdded, type WrapperWords, wrapperWords } from "./wrapper-options.ts";
import type { WrapperOptions } from "./wrapper-table.ts";

const FIND_EXEC: ReadonlySet<string> = new Set(["-exec", "-execdir", "-ok", "-okdir"]);

export const UNSURE: Inner = {
  kind: "opaque",
  reason: "Where the inner command begins is only known when the command runs",
};

/** What a wrapper runs, by its table row. */
export function unwrapWrapper(
  words: readonly CommandWord[],
  options: WrapperOptions,
  shell: ShellLanguage,
): Inner[] {
  const own = wrapperWords(words, options);
  if (own.lookup || own.refused) return [];
  const rest = words.slice(own.program);
  const found =
    own.scripts.length > 0 ? unwrapStrings(words, own, rest, options, shell) : unwrapRest(own, rest, options);
  const { folder } = own;
  const placed =
    folder === undefined
      ? found
      : found.map((inner) => (inner.kind === "opaque" ? inner : { ...inner, folder }));
  return own.unsure && found.length > 0 ? [...placed, UNSURE] : placed;
}

function unwrapRest(own: WrapperWords, rest: readonly CommandWord[], options: WrapperOptions): Inner[] {
  if (rest.length === 0) return options.shell === true ? [{ kind: "words", words: [literalWord("sh")] }] : [];
  if (joins(own, options)) return scriptOf(rest, "sh", "the wrapper");
  const { assignments } = own;
  if (options.appends !== true) return [{ kind: "words", words: rest, assignments }];
  if (own.replace === null)
    return [{ kind: "words", words: endsInAdded(rest) ? rest : [...rest, addedWords()] }];
  const mark = own.replace;
  return [{ kind: "words", words: rest.map((word) => replaced(word, mark)) }];
}

function joins(own: WrapperWords, { joins: letter, unjoins }: WrapperOptions): boolean {
  if (letter === undefined) return false;
  return letter === "" ? !(unjoins ?? []).some((one) => own.given.has(one)) : own.given.has(letter);
}

function unwrapStrings(
  words: readonly CommandWord[],
  own: WrapperWords,
  rest: readonly CommandWord[],
  options: WrapperOptions,
  shell: ShellLanguage,
): Inner[] {
  if (options.splits !== true)
    return own.scripts.flatMap((script) => scriptOf([script], shell, "the option"));
  const split = own.scripts.map((script) => (script.kind === "dynamic" ? null : splitEnvString(script.text)));
  const known = split.filter((one) => one !== null);
  if (known.length === split.length)
    return [
      {
        kind: "words",
        words: [...words.slice(0, 1), ...known.flat(), ...rest],
        assignments: own.assignments,
      },
    ];
  return [
    ...own.scripts.flatMap((script) => scriptOf([script, ...rest], shell, "the option")),
    { kind: "opaque", reason: "What 'env -S' makes of its string is only known when the command runs" },
  ];
}

export function replaced(word: CommandWord, mark: string): CommandWord {
  if (mark === "" || !word.text.includes(mark)) return word;
  return { kind: "dynamic", text: word.text.replaceAll(mark, UNKNOWN_MARK), raw: word.raw };
}

/** Each `-exec … ;` of find. `{}` is a file that find will name. */
export function unwrapFind(words: readonly CommandWord[]): Inner[] {
  const found: Inner[] = [];
  for (let at = 1; at < words.length; at += 1) {
    if (!FIND_EXEC.has(words[at]?.text ?? "")) continue;
    const start = at + 1;
    while (at + 1 < words.length && !endsExec(words, at + 1)) at += 1;
    const inner = words.slice(start, at + 1).map((word) => replaced(word, "{}"));
    if (inner.length > 0) found.push({ kind: "words", words: inner });
  }
  return found;
}

function endsExec(words: readonly CommandWord[], at: number): boolean {
  const text = words[at]?.text;
  return text === ";" || (text === "+" && words[at - 1]?.text === "{}");
}
