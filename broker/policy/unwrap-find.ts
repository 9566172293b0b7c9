import { type CommandWord, UNKNOWN_MARK } from "./command.ts";
import type { Inner } from "./inner.ts";
import { hasUnknownName, mayBeOption, unknownOption } from "./unknown-options.ts";
import { replaced } from "./unwrap-programs.ts";
import { isAdded } from "./wrapper-options.ts";

const RUNS: ReadonlySet<string> = new Set(["-exec", "-execdir", "-ok", "-okdir"]);
/** Tests and actions with one value, which is no test itself, whatever it is. */
const VALUED = new RegExp(
  `^-(D|amin|anewer|atime|cmin|cnewer|context|ctime|fls|fprint|fprint0|fstype|gid|group|i?lname|i?name|inum|i?path|i?regex|i?wholename|links|max-?depth|min-?depth|mmin|mtime|newer(..)?|perm|printf|regextype|samefile|size|type|uid|used|user|xtype|files0-from)$`,
);

/** Each `-exec … ;` of find. `{}` is a file that find will name. */
export function unwrapFind(words: readonly CommandWord[]): Inner[] {
  const found: Inner[] = [];
  let unknown: CommandWord | undefined;
  let inPaths = true;
  let isLoose = false;
  for (let at = 1; at < words.length; at += 1) {
    const word = words[at];
    if (word === undefined) break;
    // A `;` that ends nothing known: one of the words before it may have been an `-exec`.
    isLoose ||= endsExec(words, at);
    if (hasUnknownName(word)) return [...found, unknownOption(word, "find")];
    if (mayBeOption(word) && !RUNS.has(words[at - 1]?.text ?? "")) {
      if (!inPaths || isAdded(word)) return [...found, unknownOption(word, "find")];
      unknown ??= word;
    }
    inPaths &&= !/^[-(!,]/.test(word.text) || /^-([HLP]|O\d)$/.test(word.text);
    if (VALUED.test(word.text)) at += 1;
    if (!RUNS.has(word.text)) continue;
    const start = at + 1;
    while (at + 1 < words.length && !endsExec(words, at + 1)) at += 1;
    const inner = words.slice(start, at + 1).map((one) => replaced(one, "{}"));
    if (inner.length > 0) found.push({ kind: "words", words: inner });
    at += 1;
  }
  if (unknown === undefined || !isLoose) return found;
  const { kind, reason } = unknownOption(unknown, "find");
  return [...found, { kind, reason }];
}

/** `{}$x +` and `\;$x` end it where x is empty. */
function endsExec(words: readonly CommandWord[], at: number): boolean {
  const text = words[at]?.text;
  const before = words[at - 1]?.text;
  return (
    text === ";" ||
    text === `;${UNKNOWN_MARK}` ||
    (text === "+" && (before === "{}" || before === `{}${UNKNOWN_MARK}`))
  );
}
