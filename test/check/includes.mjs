import { readFileSync } from "node:fs";
import { join, posix } from "node:path";

/** C files below this folder include each other by their path from there; all others by their path from their own folder. */
export const NATIVE_ROOT = "world/native/";

/**
 * A `#include "…"` of a file: the file that it names, below the repository, and the line where it stands.
 * @typedef {{ to: string, line: number }} Include
 */

/**
 * @param {string} root
 * @param {string} path a C file below root
 * @returns {Include[]}
 */
export function includesOf(root, path) {
  const from = path.startsWith(NATIVE_ROOT) ? NATIVE_ROOT : posix.dirname(path);
  return readFileSync(join(root, path), "utf8")
    .split("\n")
    .flatMap((text, at) => {
      const name = /^#include "([^"]+)"/.exec(text)?.[1];
      return name === undefined ? [] : [{ to: posix.join(from, name), line: at + 1 }];
    });
}

/**
 * A module: `x.c` and `x.h` together.
 * @param {string} path
 */
export function moduleOf(path) {
  return path.replace(/\.[ch]$/, "");
}

/**
 * Which C module includes which.
 * @param {string} root
 * @param {readonly string[]} paths C files below root
 */
export function includeGraph(root, paths) {
  /** @type {Map<string, Set<string>>} */
  const graph = new Map();
  for (const path of paths) {
    const from = moduleOf(path);
    for (const to of includesOf(root, path).map(({ to }) => moduleOf(to))) {
      if (to !== from) graph.set(from, (graph.get(from) ?? new Set()).add(to));
    }
  }
  return graph;
}
