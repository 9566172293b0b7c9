/**
 * Every name that a command of the corpus may mean as a program: all its words, and some that no word spells. Builtins
 * are left out: a shell would not look for them.
 */
export function programNames(texts: readonly string[]): ReadonlySet<string> {
  const words = texts.flatMap((text) => text.match(/[A-Za-z0-9][A-Za-z0-9._+-]*/g) ?? []);
  return new Set([...words, ...UNSPELT].filter((name) => name !== "." && name !== ".."));
}

const UNSPELT = [
  "rm",
  "sudo",
  "ls",
  "[",
  "mawk",
  "dash",
  "ssh",
  "sensible-editor",
  "editor",
  "vi",
  "vim.basic",
  "gzip",
];
