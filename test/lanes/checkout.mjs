import { execFileSync } from "node:child_process";
import { cpSync, existsSync } from "node:fs";
import { join } from "node:path";
import { CHECKOUT } from "../../api/setup/checkout.mjs";

/**
 * Makes a clone of this checkout as it stands, changes that are not committed too. The packages come along, so no registry
 * is asked; set-up builds the rest.
 * @param {string} folder not there yet
 */
export function copyCheckout(folder) {
  // The checkout may be somebody else's: git then reads it only when told so.
  git(CHECKOUT, "clone", "--quiet", "--no-checkout", "--no-hardlinks", CHECKOUT, folder);
  git(folder, "reset", "--quiet");
  const listed = git(CHECKOUT, "ls-files", "-z", "--cached", "--others", "--exclude-standard");
  for (const path of [...listed.split("\0").filter(Boolean), "node_modules"]) {
    const from = join(CHECKOUT, path);
    // One that was removed and not committed is listed too.
    if (existsSync(from)) cpSync(from, join(folder, path), { recursive: true, verbatimSymlinks: true });
  }
}

/**
 * @param {string} folder
 * @param {...string} words
 */
function git(folder, ...words) {
  return execFileSync("git", ["-c", "safe.directory=*", ...words], {
    cwd: folder,
    encoding: "utf8",
    maxBuffer: 64 * 1024 * 1024,
    env: {
      ...process.env,
      GIT_CONFIG_COUNT: "1",
      GIT_CONFIG_KEY_0: "safe.directory",
      GIT_CONFIG_VALUE_0: "*",
    },
  });
}
