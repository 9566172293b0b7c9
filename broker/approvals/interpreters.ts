/** The first line of a script, by which the kernel finds the program that runs it (execve(2), "Interpreter scripts"). */
import { closeSync, constants, openSync, readSync } from "node:fs";
import { basename } from "node:path";

/** The kernel's bound on that line (BINPRM_BUF_SIZE). */
const MAX_LINE = 256;

/** `sought`: what env looks up in PATH. `unknown`: a word of the line that may name a file, or an option of env that is not read here. */
export type Interpreter = { readonly path: string; readonly sought?: string; readonly unknown?: string };

/** Options of env that name nothing (env(1)). */
const PLAIN_OPTIONS: ReadonlySet<string> = new Set(["-", "-S", "-i", "-v"]);

const PLAIN_WORD = /^[\w.+@%,-]+$/;

/** Undefined for a file without such a line, or that cannot be read. */
export function interpreterOf(file: string): Interpreter | undefined {
  const [, path, rest = ""] = /^#![ \t]*([^ \t\n\0]+)([^\n\0]*)/.exec(beginningOf(file)) ?? [];
  if (path === undefined) return undefined;
  const words = rest.split(/[ \t\r]+/).filter((word) => word !== "");
  if (basename(path) !== "env") return { path, ...mayNameFile(words) };
  const at = words.findIndex((word) => !PLAIN_OPTIONS.has(word) && !/^[A-Za-z_]\w*=[\w.,-]*$/.test(word));
  const [sought, ...more] = at < 0 ? [] : words.slice(at);
  if (sought === undefined) return { path };
  if (sought.startsWith("-") || !PLAIN_WORD.test(sought)) return { path, unknown: sought };
  return { path, sought, ...mayNameFile(more) };
}

/** Programs take a file by any word but an option without a separator: `#!/bin/sh runner`, `#!/usr/bin/node --require=./early.js`. */
function mayNameFile(words: readonly string[]): Pick<Interpreter, "unknown"> {
  const unknown = words.find((word) => !/^-[\w-]*$/.test(word));
  return unknown === undefined ? {} : { unknown };
}

function beginningOf(path: string): string {
  const bytes = Buffer.alloc(MAX_LINE);
  let file: number;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch {
    // Unreadable for the broker, ignoring: the kernel reads no first line of such a file for this user either.
    return "";
  }
  try {
    return bytes.toString("latin1", 0, readSync(file, bytes, 0, MAX_LINE, 0));
  } catch {
    // A folder or a device, ignoring: it has no first line.
    return "";
  } finally {
    closeSync(file);
  }
}
