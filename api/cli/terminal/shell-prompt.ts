/**
 * Finds what the bash of `substrate shell` writes for its client among a program's output: escape sequences with the broker's word.
 * Pure. One letter per byte.
 */

const ENDS = "\x07";

/** Longer than a path with its exit code, and than what a terminal keeps of typed text (4,095 bytes), each byte in hexadecimal. */
const LONGEST = 13_000;

/** `prompt`: the shell waits for a line. `ahead`: what was typed before, and no program has read. */
export type FromShell = { readonly begin: number; readonly end: number } & (
  | { readonly kind: "prompt"; readonly exit: number; readonly cwd: string }
  | { readonly kind: "ahead"; readonly text: string }
);

/** @param word of the broker's, from the start of the shell: text of a program's cannot have it */
export function promptBegins(word: string): string {
  return `\x1b]697;${word};`;
}

/** Finds the first whole sequence. */
export function promptIn(text: string, begins: string): FromShell | undefined {
  const begin = text.indexOf(begins);
  const end = begin < 0 ? -1 : text.indexOf(ENDS, begin);
  if (end < 0) return undefined;
  const [first = "", ...more] = text.slice(begin + begins.length, end).split(";");
  const rest = more.join(";");
  const place = { begin, end: end + ENDS.length };
  if (first === "ahead") return { ...place, kind: "ahead", text: decoded(rest) };
  return { ...place, kind: "prompt", exit: Number(first), cwd: utf8(rest) };
}

/** Where a sequence may begin at the end of some output. */
export function beginOfPrompt(text: string, begins: string): number {
  const at = text.lastIndexOf("\x1b");
  if (at < 0 || text.length - at > LONGEST) return text.length;
  const rest = text.slice(at);
  const mayBe = begins.startsWith(rest) || (rest.startsWith(begins) && !rest.includes(ENDS));
  return mayBe ? at : text.length;
}

function decoded(text: string): string {
  return utf8(
    text.replace(/%([0-9a-f]{2})/g, (_whole, code: string) => String.fromCharCode(Number.parseInt(code, 16))),
  );
}

function utf8(bytes: string): string {
  return Buffer.from(bytes, "latin1").toString("utf8");
}
