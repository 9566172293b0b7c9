import type { ProgramFile, ProgramStart } from "../../world/backend.ts";
import type { Where } from "../policy/index.ts";

/** Scripts that were let start and whose interpreter has not been asked for yet: each is one step of one process. */
const MAX_WAITING = 256;

/**
 * `#!/usr/bin/env python3`: env looks for the interpreter and starts it of its own. Where the kernel itself starts one
 * (`#!/usr/bin/python3`) a list of all that may run is asked about the script alone, and so it is here.
 */
export class Interpreters {
  readonly #where: Where;
  /** What a process starts next, by its id. */
  readonly #next = new Map<number, string>();

  constructor(where: Where) {
    this.#where = where;
  }

  /** A start goes on. */
  passed({ pid, files, cut }: ProgramStart): void {
    const last = files.at(-1);
    if (cut || files.length < 2 || last === undefined || !looksForAnother(last)) return;
    const [oldest] = this.#next.size < MAX_WAITING ? [] : this.#next.keys();
    if (oldest !== undefined) this.#next.delete(oldest);
    this.#next.set(pid, JSON.stringify(last.argv.slice(1)));
  }

  /** Whether this is what a script that was let start is started by: the program that its name stands for, with its very words. */
  isNext({ pid, files: [file], cut }: ProgramStart): boolean {
    const next = this.#next.get(pid);
    this.#next.delete(pid);
    const [name = ""] = file.argv;
    const isFound = file.path !== null && this.#where.resolve?.(name)?.real === file.path;
    return !cut && isFound && next === JSON.stringify(file.argv);
  }
}

const ENV = /^\/(usr\/)?bin\/env$/;

/** Without options and variables, which could make another program of it. */
function looksForAnother({ path, argv: [, program] }: ProgramFile): boolean {
  return (
    path !== null &&
    ENV.test(path) &&
    program !== undefined &&
    /^[\w.+-]+$/.test(program) &&
    !program.startsWith("-")
  );
}
