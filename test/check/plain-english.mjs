import { readFileSync } from "node:fs";
import { join } from "node:path";
import { commentsOf, englishOf } from "./english.mjs";
import { filesOf } from "./tree.mjs";

const PRODUCT = /^(?:api|broker|world|shim|lima|schemas)\//;
const GENERATED = /^schemas\/generated\/|^world\/native\/lib\/frames\.h$/;
/** Percent of all words in comments. The comments of well-kept Node packages have 1.4 to 6.2 %. */
const MOST_PRONOUNS = 7;
/** Percent of comments with at least 60 % function words. Well-kept Node packages have 0 to 3.4 %. */
const MOST_HOLLOW = 5;

/**
 * Counts pronouns and hollow comments of the product's sources; `node test/check/counts.mjs` prints the shares.
 * @param {string} root
 * @returns {string[]} one line per share that is too high
 */
export function checkEnglish(root) {
  const paths = filesOf(root, [".ts", ".mjs", ".js", ".c", ".h"]);
  const sources = paths.filter((path) => PRODUCT.test(path) && !GENERATED.test(path));
  const comments = sources.flatMap((path) => commentsOf(path, readFileSync(join(root, path), "utf8")));
  const { pronouns, hollow } = englishOf(comments);
  const findings = [];
  if (pronouns > MOST_PRONOUNS)
    findings.push(
      `${pronouns} % of the words in comments are pronouns, at most ${MOST_PRONOUNS} % may be: name the thing`,
    );
  if (hollow > MOST_HOLLOW)
    findings.push(`${hollow} % of the comments are mostly function words, at most ${MOST_HOLLOW} % may be`);
  return findings;
}
