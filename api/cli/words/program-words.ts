/** Formats commands, and programs started by commands. */
import { basename } from "node:path";
import { quotedWord } from "../../../broker/model/shell-word.ts";
import type { Span } from "../../../schemas/generated/types.ts";
import { harmlessLine } from "../terminal/terminal.ts";

/** Formats the arguments of a span as typed in a shell, with terminal sequences escaped. */
export function programWords({ cmd, program }: Span): string {
  const words = (wordsIn(cmd ?? "") ?? [cmd ?? ""]).map(typed);
  return harmlessLine([...words, ...(program?.cut === true ? ["…"] : [])].join(" "));
}

/** Formats a command sent as argv as typed in a shell; returns shell text unchanged. */
export function commandWords(cmd: string): string {
  return wordsIn(cmd)?.map(typed).join(" ") ?? cmd;
}

/** Name of the program's file, because the parent process chooses `argv[0]` freely. */
export function programName({ cmd, program }: Span): string {
  return harmlessLine(basename(program?.path ?? "") || (wordsIn(cmd ?? "")?.[0] ?? cmd ?? ""));
}

/** Formats the end of a program: `exit 0`, `SIGTERM`, `replaced`; without an end `running`, `refused` or `lost`. */
export function programEnd({ exit, signal, outcome, program }: Span): string {
  if ((signal ?? null) !== null) return harmlessLine(`${signal}`);
  if (exit !== null) return `exit ${exit}`;
  if (program?.replaced === true) return "replaced";
  return outcome ?? "running";
}

/** Formats a duration: `0.4 ms`, `35 ms`, `1.2 s`, `3 min 20 s`; empty if unknown. */
export function durationWords(milliseconds: number | null): string {
  if (milliseconds === null) return "";
  if (milliseconds < 10) return `${milliseconds.toFixed(1)} ms`;
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}

/** Parses an argv recorded as JSON; undefined for other text. */
function wordsIn(cmd: string): readonly string[] | undefined {
  try {
    const words: unknown = JSON.parse(cmd);
    if (Array.isArray(words) && words.every((word) => typeof word === "string")) return words;
  } catch {
    // Shell text or a truncated argv, ignoring: the caller shows the text unchanged.
  }
  return undefined;
}

function typed(word: string): string {
  return /^[\w@%+=:,./[\]-]+$/.test(word) ? word : quotedWord(word);
}
