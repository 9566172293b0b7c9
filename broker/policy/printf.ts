import type { CommandWord } from "./command.ts";
import type { Input } from "./inner.ts";

/** Not `\'` and `\"`: bash takes the backslash away, dash prints it. */
const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", "\\": "\\" };
/** Beyond these it is no script that somebody wrote out. */
const MOST_ARGUMENTS = 256;

/** What `printf FORMAT WORD…` prints; null when it is not plain text with `%s` in it. */
export function printedBy(args: readonly CommandWord[]): Input {
  const [format, ...words] = args[0]?.text === "--" ? args.slice(1) : args;
  if (format === undefined || format.text.startsWith("-") || words.length > MOST_ARGUMENTS) return null;
  const pieces = piecesOf(format.text);
  if (pieces === null) return null;
  const holes = pieces.filter((piece) => piece === null).length;
  const rounds = holes === 0 ? 1 : Math.max(1, Math.ceil(words.length / holes));
  const given = words.map((word) => word.text);
  let text = "";
  for (let round = 0; round < rounds; round += 1)
    text += pieces.map((piece) => piece ?? given.shift() ?? "").join("");
  return { text, certain: [format, ...words].every((word) => word.kind === "literal") };
}

/** Text, and null for each `%s`. Null when there is anything else in the format. */
function piecesOf(format: string): (string | null)[] | null {
  const pieces: (string | null)[] = [];
  for (let at = 0; at < format.length; at += 1) {
    const char = format[at] ?? "";
    if (char !== "\\" && char !== "%") {
      pieces.push(char);
      continue;
    }
    at += 1;
    const next = format[at] ?? "";
    if (char === "%" && next === "s") pieces.push(null);
    else if (char === "%" && next === "%") pieces.push("%");
    else if (char === "\\" && Object.hasOwn(ESCAPES, next)) pieces.push(ESCAPES[next] ?? "");
    else return null;
  }
  return pieces;
}
