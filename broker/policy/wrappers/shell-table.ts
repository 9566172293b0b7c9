import type { ShellLanguage } from "../words/inner.ts";

/** Shells that take `-c`, and in which language the string is read. Others (fish, csh, …) speak another language. */
const SHELLS: ReadonlyMap<string, ShellLanguage> = new Map<string, ShellLanguage>([
  ["sh", "sh"],
  ["dash", "sh"],
  ["ash", "sh"],
  ["hush", "sh"],
  ["posh", "sh"],
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

/** Read as bash or sh, and opaque as well: `=name`, `repeat 3 x`, `for x (a b)` mean something else to them. */
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

/** A word among a shell's options. A lone `+` sets none and ends none: `sh + -c STRING` runs the string. */
export const SHELL_OPTION = /^(-.|\+)/;

/** Builtins that run text in the shell they stand in. */
export const EVALUATORS: ReadonlySet<string> = new Set(["eval", "trap"]);

/** The language in which a shell's string is read; undefined for what is no such shell. */
export function languageOf(name: string): ShellLanguage | undefined {
  return SHELLS.get(plainShell(name));
}

/** Whether it is read as a shell that it only resembles. */
export function isNearShell(name: string): boolean {
  return NEAR_SHELLS.has(plainShell(name));
}

export function isForeignShell(name: string): boolean {
  return FOREIGN_SHELLS.has(plainShell(name));
}

/** What may stand behind a `|` for the word `sh` of a pattern. */
export function isShellName(name: string): boolean {
  return languageOf(name) !== undefined || isForeignShell(name);
}

/** As packages install them: `bash-static`, `zsh5`, `zsh-5.9`, `ksh93`, `ksh2020`; and `rbash`, `rksh93`, the restricted ones. */
function plainShell(name: string): string {
  const plain = name.replace(/(-static|-?\d[\d.]*)$/, "");
  return /^r(bash|zsh|ksh)$/.test(plain) ? plain.slice(1) : plain;
}
