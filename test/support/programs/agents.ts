/** Coding agents from npm, where this machine has them: the suite installs none. */
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** A folder with their programs, such as the `node_modules/.bin` that `npm install` makes; also searched: PATH. */
const FOLDER = "SUBSTRATE_TEST_AGENTS";

/** The path of an agent's program; undefined where it is not installed. */
export function agentProgram(name: string): string | undefined {
  const folders = [process.env[FOLDER] ?? "", ...(process.env["PATH"] ?? "").split(delimiter)];
  return folders.map((folder) => join(folder, name)).find((path) => path.startsWith("/") && existsSync(path));
}

/** How to have this test run. */
export function notInstalled(program: string, name: string): string {
  return `'${program}' is not installed: 'npm install ${name}' in a folder, whose node_modules/.bin ${FOLDER} names`;
}
