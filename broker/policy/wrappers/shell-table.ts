import type { ShellLanguage } from "../words/inner.ts";

/** Shells with `-c`, and the language of the string. Other shells (fish, csh, …) speak another language. */
const SHELLS: ReadonlyMap<string, ShellLanguage> = new Map<string, ShellLanguage>([
  ["sh", "sh"],
  ["dash", "sh"],
  ["ash", "sh"],
  ["hush", "sh"],
  ["posh", "sh"],
  // Becomes /bin/sh inside a world.
  ["substrate-sh", "sh"],
  ["bash", "bash"],
  ["zsh", "bash"],
  ["ksh", "bash"],
  ["mksh", "bash"],
  ["lksh", "bash"],
  ["oksh", "bash"],
  ["loksh", "bash"],
  ["pdksh", "bash"],
  ["yash", "bash"],
]);

/** Read as bash or sh, and opaque as well: `=name`, `repeat 3 x`, `for x (a b)` mean something else in these shells. */
const NEAR_SHELLS: ReadonlySet<string> = new Set([
  "hush",
  "posh",
  "zsh",
  "ksh",
  "mksh",
  "lksh",
  "oksh",
  "loksh",
  "pdksh",
  "yash",
]);

const FOREIGN_SHELLS: ReadonlySet<string> = new Set([
  "fish",
  "csh",
  "tcsh",
  "nu",
  "elvish",
  "pwsh",
  "xonsh",
  "rc",
  "es",
  "sash",
]);

/** A word among a shell's options. A lone `+` neither sets an option nor ends the options: `sh + -c STRING` runs the string. */
export const SHELL_OPTION = /^(-.|\+)/;

/** Builtins that run text in the current shell. */
export const EVALUATORS: ReadonlySet<string> = new Set(["eval", "trap"]);

/** Returns the language of a shell's string; undefined for other programs. */
export function languageOf(name: string): ShellLanguage | undefined {
  return SHELLS.get(plainShell(name));
}

/** Whether the reader only approximates the shell's language. */
export function isNearShell(name: string): boolean {
  return NEAR_SHELLS.has(plainShell(name));
}

export function isForeignShell(name: string): boolean {
  return FOREIGN_SHELLS.has(plainShell(name));
}

/** Whether the name matches the word `sh` behind a `|` in a pattern. */
export function isShellName(name: string): boolean {
  return languageOf(name) !== undefined || isForeignShell(name);
}

/** Strips package suffixes: `bash-static`, `zsh5`, `zsh-5.9`, `ksh93`, `ksh2020`; and the `r` of restricted shells: `rbash`, `rksh93`. */
function plainShell(name: string): string {
  const plain = name.replace(/(-static|-?\d[\d.]*)$/, "");
  return /^r(bash|zsh|ksh)$/.test(plain) ? plain.slice(1) : plain;
}
