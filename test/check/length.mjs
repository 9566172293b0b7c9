import { readFileSync } from "node:fs";
import { join } from "node:path";
import { filesOf } from "./tree.mjs";

/** A file ends where its thought ends; past this many lines it surely holds two. */
const LONGEST = 400;
const SOURCE = [".ts", ".mjs", ".js", ".c", ".h", ".sh"];

/**
 * Source files too long to be read at one sitting. Generated ones are for machines.
 * @param {string} root
 * @returns {string[]} one line per finding
 */
export function checkLength(root) {
  return filesOf(root, SOURCE)
    .filter((path) => !path.startsWith("schemas/generated/") && path !== "world/native/lib/frames.h")
    .map((path) => ({ path, lines: readFileSync(join(root, path), "utf8").split("\n").length - 1 }))
    .filter(({ lines }) => lines > LONGEST)
    .map(({ path, lines }) => `${path} has ${lines} lines, the longest allowed is ${LONGEST}`);
}
