/** Decides which changes are listed as `autorun`: files that a tool runs or loads unasked. */
import { constants } from "node:fs";
import { nameOf, RUN_LATER, spelledOut } from "./run-later.ts";

/**
 * Whether a tool would run or load the file at a path (relative to the project) unasked. `mode` is the file's `st_mode`, 0 for a
 * missing file: a link in place of a listed folder brings in its target, which later commands can change under another name.
 */
export function isAutorun(path: string, mode = 0): boolean {
  if ((mode & constants.S_IFMT) === constants.S_IFLNK && FOLDER_LINKS.test(path)) return true;
  let start = 0;
  for (let end = path.indexOf("/"); end >= 0; end = path.indexOf("/", start)) {
    const name = path.slice(start, end);
    if (FOLDERS.has(name) || PLACES.get(name)?.test(path.slice(end + 1)) === true) return true;
    start = end + 1;
  }
  const last = path.slice(start);
  return FILES.has(last) || FOLDERS.has(last) || hasSuffix(last) || LASTS.test(last) || OTHERS.test(path);
}

/** Wildcards as regular expressions; every other character matches itself. */
const MEANINGS: ReadonlyMap<string, string> = new Map([
  ["**/", "(?:.*/)?"],
  ["*", "[^/]*"],
]);

/** A pattern without braces and without `**` at its ends. `below`: everything below matches too. */
type Word = { readonly text: string; readonly below: boolean };

const WORDS: readonly Word[] = RUN_LATER.flatMap(({ paths }) => paths)
  .flatMap(spelledOut)
  .map((word) => ({ text: nameOf(word), below: word.endsWith("/**") }));

/*
 * Performance: a listing compares many paths with every row. Most rows are a single name, looked up in a set: one regular
 * expression for all rows took ten times as long.
 */
const NAMES = WORDS.filter(({ text }) => !/[*/]/.test(text));
const FILES = new Set(NAMES.filter(({ below }) => !below).map(({ text }) => text));
const FOLDERS = new Set(NAMES.filter(({ below }) => below).map(({ text }) => text));
/** Suffixes after a dot of the last name: `*.pth`. */
const SUFFIXES = new Set(
  WORDS.filter(({ text }) => /^\*\.[^*/]+$/.test(text)).map(({ text }) => text.slice("*".length)),
);
/** Patterns for the last name alone: `Dockerfile.*`. */
const LASTS = anyOf(
  "^",
  WORDS.filter(({ text, below }) => !below && /^(?!\*\.)[^/]*\*[^/]*$/.test(text)),
);
/** Patterns for paths below a folder of that name. */
const PLACES = byFolder(WORDS.filter(({ text }) => /^[^*/]+\//.test(text)));
const OTHERS = anyOf(
  "(?:^|/)",
  WORDS.filter(({ text, below }) => /^[^/]*\*/.test(text) && (below || text.includes("/"))),
);

/** The folders spelled in a pattern before its last name: `.jj` and `.jj/repo` of `.jj/repo/config.toml`. */
const FOLDER_LINKS = anyOf(
  "(?:^|/)",
  [...new Set(WORDS.flatMap(({ text }) => foldersAbove(text)))].map((text) => ({ text, below: false })),
);

function foldersAbove(text: string): readonly string[] {
  const names = text.split("/").slice(0, -1);
  const end = names.indexOf("**");
  return names.slice(0, end < 0 ? undefined : end).map((_name, at) => names.slice(0, at + 1).join("/"));
}

function hasSuffix(name: string): boolean {
  for (let at = name.indexOf("."); at >= 0; at = name.indexOf(".", at + 1))
    if (SUFFIXES.has(name.slice(at))) return true;
  return false;
}

function byFolder(words: readonly Word[]): ReadonlyMap<string, RegExp> {
  const below = new Map<string, Word[]>();
  for (const { text, ...rest } of words) {
    const [folder = "", ...names] = text.split("/");
    below.set(folder, [...(below.get(folder) ?? []), { text: names.join("/"), ...rest }]);
  }
  return new Map([...below].map(([folder, each]) => [folder, anyOf("^", each)]));
}

function anyOf(start: string, words: readonly Word[]): RegExp {
  const texts = words.map(({ text, below }) => {
    const expression = text.replace(
      /\*\*\/|[*.+?^$()|[\]\\]/g,
      (letter) => MEANINGS.get(letter) ?? `\\${letter}`,
    );
    return `${expression}${below ? "(?:/|$)" : "$"}`;
  });
  return new RegExp(`${start}(?:${texts.join("|")})`);
}
