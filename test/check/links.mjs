import { existsSync, readFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { filesOf } from "./tree.mjs";

const ALSO = ["README.md", "CONTRIBUTING.md"];

/** `[text](target)`, but for targets on other hosts and places in the same page. */
const LINK = /\]\((?![a-z]+:|#)([^)#\s]+)[^)]*\)/g;

/**
 * Links between the project's pages and files that lead nowhere: a promise must not name a proof that is gone.
 * @param {string} root
 * @returns {string[]} one line per finding
 */
export function checkLinks(root) {
  const pages = [...ALSO.filter((page) => existsSync(join(root, page))), ...filesOf(root, [".md"])];
  return pages.flatMap((page) =>
    [...readFileSync(join(root, page), "utf8").matchAll(LINK)]
      .map(([, target]) => target ?? "")
      .filter((target) => !existsSync(join(root, normalize(join(dirname(page), target)))))
      .map((target) => `${page}: the link to '${target}' leads nowhere`),
  );
}
