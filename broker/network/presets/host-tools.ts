/** Runs the operator's own tools to ask for their settings; never a program that a command may have written. */
import { accessSync, constants, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { execa } from "execa";
import { realPath } from "../../model/host-paths.ts";
import type { PresetHost } from "./preset.ts";

/** A tool's output. `ok`: exit code 0. */
export type Said = { readonly ok: boolean; readonly out: string; readonly err: string };

/** npm takes about half a second on a quiet machine. */
const LIMIT_MS = 10_000;

/** Settings take some kilobytes. */
const MAX_BYTES = 1024 * 1024;

/**
 * Variables set when the broker was started from a project (`npm start`): tools would read that project's settings, and
 * git another repository's.
 */
const OF_A_PROJECT =
  /^(?:npm_config_local_prefix|npm_package_.*|npm_lifecycle_.*|INIT_CWD|OLDPWD|GIT_(?!CONFIG).*)$/;

export class HostTools {
  readonly #host: PresetHost;
  readonly #folders: readonly string[];
  readonly #limitMs: number;

  /** `limitMs`: time limit for a tool. */
  constructor(host: PresetHost, limitMs = LIMIT_MS) {
    this.#limitMs = limitMs;
    this.#host = host;
    const folders = (host.environment["PATH"] ?? "").split(":").filter((folder) => isAbsolute(folder));
    this.#folders = folders.filter(
      (folder) => this.#isHosts(folder) && !/\/node_modules\/\.bin\/?$/.test(folder),
    );
  }

  get host(): PresetHost {
    return this.#host;
  }

  /**
   * Runs a program without input in `/`, away from any project's settings. Returns a sentence when the program is not
   * installed or did not end in time.
   */
  async ask(
    program: string,
    words: readonly string[],
    more: Readonly<Record<string, string>> = {},
  ): Promise<Said | string> {
    const file = this.#find(program);
    if (file === undefined) return this.#notFound(program);
    const env = { ...this.#environment(), ...more };
    const done = new AbortController();
    const running = execa(file, words, {
      cwd: "/",
      env,
      extendEnv: false,
      stdin: "ignore",
      timeout: this.#limitMs,
      killSignal: "SIGKILL",
      maxBuffer: MAX_BYTES,
      reject: false,
    });
    try {
      // A grandchild holding the pipe would keep execa waiting for the grandchild's whole life.
      const result = await Promise.race([
        running,
        pause(this.#limitMs + 500, undefined, { signal: done.signal }),
      ]);
      if (result === undefined || result.timedOut)
        return `'${file}' did not answer within ${this.#limitMs / 1000} s`;
      if (result.isMaxBuffer) return `'${file}' printed more than ${MAX_BYTES} bytes`;
      return { ok: result.exitCode === 0, out: result.stdout, err: result.stderr };
    } finally {
      done.abort();
    }
  }

  /** Returns the real path of a program on the PATH; undefined when no program would run. */
  where(program: string): string | undefined {
    const file = this.#find(program);
    return file === undefined ? undefined : realPath(file);
  }

  #environment(): Record<string, string> {
    const kept = Object.entries(this.#host.environment).filter(
      (pair): pair is [string, string] => pair[1] !== undefined && !OF_A_PROJECT.test(pair[0]),
    );
    return { ...Object.fromEntries(kept), HOME: this.#host.home, PATH: this.#folders.join(":"), PWD: "/" };
  }

  #find(program: string): string | undefined {
    return this.#folders
      .map((folder) => join(folder, program))
      .find((file) => isProgram(file) && this.#isHosts(file));
  }

  /** Checks the path and its real path: a protected link may lead to a file that commands can write. */
  #isHosts(path: string): boolean {
    const { mayBeWritten } = this.#host;
    const real = realPath(path);
    return real !== undefined && !mayBeWritten(path) && !mayBeWritten(real);
  }

  #notFound(program: string): string {
    const folders = (this.#host.environment["PATH"] ?? "").split(":").filter((folder) => isAbsolute(folder));
    const file = folders.map((folder) => join(folder, program)).find(isProgram);
    return file === undefined
      ? `${program} is not installed`
      : `'${file}' was not run: commands in worlds may write it, or it belongs to a project`;
  }
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    // Missing, a dangling link or not executable: the next folder of PATH may have the program.
    return false;
  }
}
