/** A command, or a program that it started, in words. */
import { basename } from "node:path";
import type { Span } from "../../../schemas/generated/types.ts";
import { harmlessLine } from "../terminal/terminal.ts";

/** Its words as one would type them, with nothing in them that a terminal obeys. */
export function programWords({ cmd, program }: Span): string {
  const words = (wordsIn(cmd ?? "") ?? [cmd ?? ""]).map(typed);
  return harmlessLine([...words, ...(program?.cut === true ? ["…"] : [])].join(" "));
}

/** A command as one would type it, where it was sent as words; what was sent as a shell's text stays as it is. */
export function commandWords(cmd: string): string {
  return wordsIn(cmd)?.map(typed).join(" ") ?? cmd;
}

/** Its file's name: `argv[0]` is whatever its parent chose. */
export function programName({ cmd, program }: Span): string {
  return harmlessLine(basename(program?.path ?? "") || (wordsIn(cmd ?? "")?.[0] ?? cmd ?? ""));
}

/** `exit 0`, `SIGTERM`, `replaced`, or why there is none of them: `running`, `refused`, `lost`. */
export function programEnd({ exit, signal, outcome, program }: Span): string {
  if ((signal ?? null) !== null) return harmlessLine(`${signal}`);
  if (exit !== null) return `exit ${exit}`;
  if (program?.replaced === true) return "replaced";
  return outcome ?? "running";
}

/** `0.4 ms`, `35 ms`, `1.2 s`, `3 min 20 s`; empty where it is not known. */
export function durationWords(milliseconds: number | null): string {
  if (milliseconds === null) return "";
  if (milliseconds < 10) return `${milliseconds.toFixed(1)} ms`;
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}

/** The words of an argv, which is written as JSON; undefined for every other text. */
function wordsIn(cmd: string): readonly string[] | undefined {
  try {
    const words: unknown = JSON.parse(cmd);
    if (Array.isArray(words) && words.every((word) => typeof word === "string")) return words;
  } catch {
    // A shell's text, or it was cut where it is written, ignoring: what is left of it is shown.
  }
  return undefined;
}

function typed(word: string): string {
  return /^[\w@%+=:,./[\]-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
