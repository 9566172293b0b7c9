import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** The folders that hold the project; dotfiles, node_modules and .build are not among them. */
export const FOLDERS = ["api", "broker", "lima", "policies", "schemas", "shim", "systemd", "test", "world"];

/**
 * Every file of the project's folders.
 * @param {string} root
 * @param {readonly string[]} suffixes
 * @returns {string[]} paths below root, sorted
 */
export function filesOf(root, suffixes) {
  return FOLDERS.filter((folder) => existsSync(join(root, folder)))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" }).map((name) =>
        join(folder, name),
      ),
    )
    .filter((path) => suffixes.some((suffix) => path.endsWith(suffix)))
    .sort();
}
