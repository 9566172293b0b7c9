/** Programs that a command starts, as a world tells of them. */
import { type CompiledPolicy, type Program, parsePolicy } from "../../../broker/policy/index.ts";
import type { ProgramFile, ProgramStart } from "../../../world/backend.ts";

export const PROJECT = "/projects/app";

/** What is installed, and where it leads. */
const INSTALLED: ReadonlyMap<string, string> = new Map([
  ["/usr/bin/git", "/usr/bin/git"],
  ["/usr/bin/sudo", "/usr/bin/sudo"],
  ["/usr/bin/vim", "/usr/bin/vim.basic"],
  ["/usr/bin/npm", "/usr/lib/node_modules/npm/bin/npm-cli.js"],
  ["/usr/bin/node", "/usr/bin/node"],
  ["/usr/bin/rm", "/usr/bin/rm"],
  ["/usr/bin/python3", "/usr/bin/python3.11"],
  ["/usr/bin/make", "/usr/bin/make"],
  ["/projects/app/tool", "/projects/app/tool"],
  ["/projects/app/node_modules/.bin/lint", "/projects/app/node_modules/lint/cli.js"],
]);

export function resolve(program: string): Program | null {
  const path = program.startsWith("/") ? program : `/usr/bin/${program}`;
  const real = INSTALLED.get(path);
  return real === undefined ? null : { path, real };
}

export const WHERE = { project: PROJECT, home: "/home/ann", cwd: PROJECT, resolve };

export function policyOf(commands: object, more: object = {}): CompiledPolicy {
  const text = JSON.stringify({ id: "p", name: "P", mode: "enforce", commands, ...more });
  const loaded = parsePolicy(text, "p.yaml");
  if ("problems" in loaded) throw new Error(loaded.problems.map((problem) => problem.text).join("\n"));
  return loaded.ok;
}

/** A file with the words that it gets; `called` as it is asked for. */
export function file(called: string, words: readonly string[], more: Partial<ProgramFile> = {}): ProgramFile {
  const real = resolve(called)?.real ?? called;
  const argv = [called.slice(called.lastIndexOf("/") + 1), ...words];
  return { called, path: real, argv, same: [], ...more };
}

export function started(first: ProgramFile, ...others: readonly ProgramFile[]): ProgramStart {
  return { pid: 7, folder: PROJECT, files: [first, ...others], cut: false, unread: null };
}
