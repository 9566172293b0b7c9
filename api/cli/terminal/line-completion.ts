import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, resolve } from "node:path";
import { harmlessLine } from "./terminal.ts";

/** Names of files, completed from the shell's folder; readline shows them as they are, so none that the terminal would act on. */
export function completions(line: string, cwd: string): [string[], string] {
  const word = /[^\s'"|&;<>()]*$/.exec(line)?.[0] ?? "";
  const folder = resolve(cwd, word.endsWith("/") ? word : dirname(word));
  const begin = word.endsWith("/") ? "" : basename(word);
  if (word === "" || !existsSync(folder)) return [[], word];
  try {
    const names = readdirSync(folder, { withFileTypes: true }).filter(
      ({ name }) => name.startsWith(begin) && harmlessLine(name) === name,
    );
    const before = word.slice(0, word.length - begin.length);
    return [names.map((entry) => `${before}${entry.name}${entry.isDirectory() ? "/" : ""}`), word];
  } catch {
    // A folder that may not be read completes nothing.
    return [[], word];
  }
}
