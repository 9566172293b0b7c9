import { posix } from "node:path";
import { membersOfCycles } from "./cycles.mjs";
import { includeGraph, includesOf, moduleOf, NATIVE_ROOT } from "./includes.mjs";
import { filesOf } from "./tree.mjs";

/**
 * Which room of `world/native` may include from which others, the lowest first; its own files always, and `main.c` from all. A room
 * that is not listed is refused.
 * @type {Readonly<Record<string, readonly string[]>>}
 */
const MAY = {
  lib: [],
  seccomp: ["lib"],
  outer: ["lib"],
  mount: ["lib", "outer"],
  deny: ["lib", "mount"],
  notify: ["lib", "seccomp"],
  "notify/starts": ["lib", "seccomp", "notify"],
  "notify/connects": ["lib", "notify"],
  "notify/writes": ["lib", "deny", "notify"],
  seals: ["lib", "deny", "notify", "notify/writes"],
  telemetry: ["lib"],
  run: [
    ...["lib", "seccomp", "outer", "mount", "deny", "telemetry", "seals"],
    ...["notify", "notify/starts", "notify/connects", "notify/writes"],
  ],
  network: ["lib"],
  changes: ["lib"],
  files: ["lib"],
  probe: ["lib", "outer"],
};

/** The same for the programs of `shim/`, by folder. @type {Readonly<Record<string, readonly string[]>>} */
const SHIM_MAY = {
  "shim/client": [],
  "shim/stream": ["shim/client"],
  shim: ["shim/client", "shim/stream"],
  "shim/front": ["shim/client", "shim/stream"],
  "shim/preload": [],
};

/** Files that a person takes in at one look. */
const MOST_FILES = 40;

/**
 * Includes of the C part that lead to a room above or beside, modules that include each other in a circle, and rooms with too many files.
 * @param {string} root
 * @returns {string[]} one line per finding, none when all is well
 */
export function checkRooms(root) {
  const all = filesOf(root, [".c", ".h"]);
  const files = all.filter((path) => path.startsWith(NATIVE_ROOT));
  const inCycle = new Set(membersOfCycles(includeGraph(root, files)));
  return [
    ...files.flatMap((path) => findingsIn(root, path, inCycle)),
    ...all.filter((path) => path.startsWith("shim/")).flatMap((path) => findingsInShim(root, path)),
    ...crowded(files),
  ];
}

/**
 * @param {string} root
 * @param {string} path
 * @returns {string[]}
 */
function findingsInShim(root, path) {
  const folder = posix.dirname(path);
  const may = SHIM_MAY[folder];
  if (may === undefined) return [`${path}: no rule says what this folder may include`];
  return includesOf(root, path)
    .filter(({ to }) => posix.dirname(to) !== folder && !may.includes(posix.dirname(to)))
    .map(({ to, line }) => `${path}:${line}: ${folder} may not include '${to}'`);
}

/**
 * @param {string} root
 * @param {string} path
 * @param {ReadonlySet<string>} inCycle
 * @returns {string[]}
 */
function findingsIn(root, path, inCycle) {
  const room = roomOf(path);
  if (room !== "." && MAY[room] === undefined) return [`${path}: no rule says what this room may include`];
  return includesOf(root, path).flatMap(({ to, line }) => {
    const [from, target] = [moduleOf(path), moduleOf(to)];
    const isAllowed = room === "." || roomOf(to) === room || MAY[room]?.includes(roomOf(to)) === true;
    const isCircle = from !== target && inCycle.has(from) && inCycle.has(target);
    return [
      ...(isAllowed ? [] : [`${path}:${line}: ${room} may not include '${to}'`]),
      ...(isCircle ? [`${path}:${line}: ${from} includes ${target}, and both lie on a circle`] : []),
    ];
  });
}

/** @param {readonly string[]} files */
function crowded(files) {
  /** @type {Map<string, number>} */
  const sizes = new Map();
  for (const path of files) sizes.set(roomOf(path), (sizes.get(roomOf(path)) ?? 0) + 1);
  return [...sizes]
    .filter(([, size]) => size > MOST_FILES)
    .map(([room, size]) => `${NATIVE_ROOT}${room} has ${size} files, the most allowed is ${MOST_FILES}`);
}

/** The folder below `world/native`, "." for that itself. @param {string} path */
function roomOf(path) {
  return posix.relative(NATIVE_ROOT, posix.dirname(path)) || ".";
}
