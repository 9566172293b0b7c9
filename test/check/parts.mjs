import { checkC } from "./c-source.mjs";
import { checkLayering } from "./layering.mjs";
import { checkLength } from "./length.mjs";
import { checkLinks } from "./links.mjs";
import { checkEnglish } from "./plain-english.mjs";
import { runScript } from "./programs.mjs";
import { checkReadmes } from "./readmes.mjs";
import { checkRooms } from "./rooms.mjs";
import { checkTopLevel } from "./top-level.mjs";

const BIOME = "node_modules/@biomejs/biome/bin/biome";
const OXLINT = "node_modules/oxlint/bin/oxlint";
const TSC = "node_modules/typescript/bin/tsc";

/**
 * A part of the gate: lines that say what is wrong with the tree at `root`, none when all is well. It writes nothing
 * there, and nothing into node_modules, .build or the home folder either.
 * @typedef {(root: string) => string[] | Promise<string[]>} Part
 */

/** The programs come first, so that they run while the rest is looked at here. @type {Readonly<Record<string, Part>>} */
export const PARTS = {
  types: (root) => runScript(root, [TSC, "--noEmit", "--pretty", "false"]),
  lint: (root) => runScript(root, [OXLINT, "--type-aware", "--deny-warnings"]),
  format: (root) => runScript(root, [BIOME, "format", "--colors=off", "--reporter=summary", "."]),
  generated: (root) => runScript(root, ["schemas/generate.mjs", "--check"]),
  c: checkC,
  layering: checkLayering,
  rooms: checkRooms,
  length: checkLength,
  english: checkEnglish,
  readmes: checkReadmes,
  links: checkLinks,
  "top level": checkTopLevel,
};
