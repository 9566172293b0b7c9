/** The first line of a script, by which the kernel finds the program that runs it (execve(2), "Interpreter scripts"). */
import { closeSync, constants, openSync, readSync } from "node:fs";
import { basename } from "node:path";

/** The kernel's bound on that line (BINPRM_BUF_SIZE). */
const MAX_LINE = 256;

/** `sought`: what env looks up in PATH, by the first word that is no option of its own. */
export type Interpreter = { readonly path: string; readonly sought?: string };

/** Undefined for a file without such a line, or that cannot be read. */
export function interpreterOf(file: string): Interpreter | undefined {
  const [, path, rest = ""] = /^#![ \t]*([^ \t\n\0]+)([^\n\0]*)/.exec(beginningOf(file)) ?? [];
  if (path === undefined) return undefined;
  const words = rest.split(/[ \t]+/).filter((word) => word !== "");
  const sought = words.find((word) => !word.startsWith("-") && !word.includes("="));
  return basename(path) === "env" && sought !== undefined ? { path, sought } : { path };
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
