/** The files of a trace: the live file, and beside it the rotated files, each named by the number of its first line. */
import { existsSync, openSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Span } from "../../schemas/generated/types.ts";
import { readLines } from "./lines.ts";

/** A rotated file. */
export type TracePart = { readonly first: number; readonly path: string; readonly size: number };

/** Digits of the largest integer in JSON, so that names sort like numbers. */
const DIGITS = 16;

/** `trace-0000000000000001.jsonl` beside `trace.jsonl`. */
export function partPath(live: string, first: number): string {
  return `${stemOf(live)}-${String(first).padStart(DIGITS, "0")}.jsonl`;
}

/** Lists the rotated files, oldest first. */
export function rotatedParts(live: string): readonly TracePart[] {
  const folder = dirname(live);
  if (!existsSync(folder)) return [];
  const start = `${basename(stemOf(live))}-`;
  return readdirSync(folder)
    .filter((name) => name.startsWith(start) && /^\d{16}\.jsonl$/.test(name.slice(start.length)))
    .sort()
    .map((name) => {
      const path = join(folder, name);
      return { first: Number(name.slice(start.length, -".jsonl".length)), path, size: statSync(path).size };
    });
}

/** Lists all files in the order of their lines; the live file, if present, is last. */
function traceFiles(live: string): readonly string[] {
  return [...rotatedParts(live).map(({ path }) => path), ...(existsSync(live) ? [live] : [])];
}

/** Reads the text of every line, from the oldest file to the live file. */
export async function* readTrace(live: string): AsyncGenerator<string> {
  for (const file of traceFiles(live))
    for await (const { bytes } of readLines(file)) yield bytes.toString("utf8");
}

/** Parses a line; undefined for a truncated or edited one, which `trace verify` reports. */
export function spanIn(text: string): Span | undefined {
  try {
    return JSON.parse(text) as Span;
  } catch {
    return undefined;
  }
}

/** Opens a file of the trace; undefined when it is missing, as the live file is between the two renames of a rotation. */
export function openOrNothing(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function stemOf(live: string): string {
  return live.replace(/\.jsonl$/, "");
}
