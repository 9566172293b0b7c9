/** The lines typed into `substrate shell`: kept for later shells, and put in place of `!!` and its like. */
import { spawnSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname } from "node:path";

/** Lines of earlier shells that are read again. */
export const MOST_LINES = 1000;

/**
 * bash expands by its own rules (quotes, `!$`, `!git:s/a/b/`), and runs nothing: `history -p` only prints. `set -o history` makes
 * bash leave `$!`, `[!` and `${!` as they are, and extglob `!(`.
 */
const EXPAND = `shopt -s extglob; HISTFILE= HISTSIZE=-1; set -o history; set +o history; history -c
while IFS= read -rd '' line; do history -s -- "$line"; done
history -p -- "$1"`;

/** `!` before a word, and \`^old^new\`. */
const MAY_EXPAND = /![^\s=]|^\^/;
const SWITCH = /^\s*set\s+([+-])(?:H|o\s+histexpand)\s*$/;

export class LineHistory {
  readonly #path: string;
  readonly #lines: string[];
  /** The lines that this shell ran: bash in the world lists them under these numbers. */
  readonly #numbered: string[] = [];
  #expands = true;

  constructor(path: string) {
    this.#path = path;
    this.#lines = linesOf(path);
  }

  newestFirst(): readonly string[] {
    return [...this.#lines].reverse().map((line) => line.replaceAll("\n", "; "));
  }

  add(line: string): void {
    if (line.startsWith(" ") || line === this.#lines.at(-1)) return;
    this.#lines.push(line);
    mkdirSync(dirname(this.#path), { recursive: true });
    appendFileSync(this.#path, `${JSON.stringify(line)}\n`, { mode: 0o600 });
  }

  /** Notes a line that the shell has run. */
  ran(line: string): void {
    const [, sign] = SWITCH.exec(line) ?? [];
    if (sign !== undefined) this.#expands = sign === "-";
    if (!line.startsWith(" ")) this.#numbered.push(line);
  }

  /** Returns a line with earlier ones in place of what stands for them; undefined when there is no such line. */
  expand(line: string): string | undefined {
    if (!this.#expands || !MAY_EXPAND.test(line)) return line;
    const input = (/!\d/.test(line) ? this.#numbered : this.#lines).map((each) => `${each}\0`).join("");
    const { status, stdout } = spawnSync("/bin/bash", ["--norc", "--noprofile", "-c", EXPAND, "bash", line], {
      ...{ input, encoding: "utf8", env: {} },
      stdio: ["pipe", "pipe", "ignore"],
    });
    return status === 0 ? stdout.replace(/\n$/, "") : undefined;
  }
}

function linesOf(path: string): string[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n").filter(Boolean).slice(-MOST_LINES);
  return lines.flatMap((line) => {
    try {
      return [String(JSON.parse(line))];
    } catch {
      // A line cut off by a full disk is no line of history.
      return [];
    }
  });
}
