/** Shells that take `-c`, and in which language the string is read. Others (fish, csh, …) speak another language. */
export const SHELLS: ReadonlyMap<string, "sh" | "bash"> = new Map<string, "sh" | "bash">([
  ["sh", "sh"],
  ["dash", "sh"],
  ["ash", "sh"],
  ["bash", "bash"],
  ["rbash", "bash"],
  ["zsh", "bash"],
  ["ksh", "bash"],
  ["mksh", "bash"],
]);

/** Read as bash, and opaque as well: `=name`, `repeat 3 x`, `for x (a b)` mean something else to them. */
export const NEAR_SHELLS: ReadonlySet<string> = new Set(["zsh", "ksh", "mksh"]);

export const FOREIGN_SHELLS: ReadonlySet<string> = new Set([
  "fish",
  "csh",
  "tcsh",
  "nu",
  "elvish",
  "pwsh",
  "xonsh",
]);

/** Builtins that run text in the shell they stand in. */
export const EVALUATORS: ReadonlySet<string> = new Set(["eval", "trap"]);

/** What may stand behind a `|` for the word `sh` of a pattern. */
export function isShellName(name: string): boolean {
  return SHELLS.has(name) || FOREIGN_SHELLS.has(name);
}
