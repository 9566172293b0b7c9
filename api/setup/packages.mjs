import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CHECKOUT } from "./checkout.mjs";
import { fingerprint } from "./fingerprint.mjs";
import { lastLines, run } from "./programs.mjs";
import { SetUpError, say } from "./say.mjs";
import { updateStamp } from "./stamp.mjs";

/** @typedef {{ version?: string, optional?: boolean, os?: string[], cpu?: string[] }} LockedPackage */

const LOCKFILE = join(CHECKOUT, "package-lock.json");
/** npm writes the installed lockfile last, so only a complete install has the file. */
const INSTALLED = join(CHECKOUT, "node_modules/.package-lock.json");
const PROGRESS_MS = 10_000;

/** Step: the lockfile's npm packages, in node_modules. */
export const packages = {
  /** @param {import("./stamp.mjs").Stamp} stamp */
  isCurrent(stamp) {
    if (!existsSync(INSTALLED)) return false;
    return stamp.packages === inputs() || isInstalled(readPackages(LOCKFILE), readPackages(INSTALLED));
  },

  /** @param {number | undefined} lock kept open by npm: the lock stays taken while the npm of a killed set-up runs */
  async make(lock) {
    say("installing the npm packages (about 20 s)");
    const started = Date.now();
    const ticking = setInterval(() => say(`still installing (${secondsSince(started)} s)`), PROGRESS_MS);
    try {
      const npm = await run(["npm", "ci", "--include=dev", "--no-audit", "--no-fund"], {
        ...(lock === undefined ? {} : { holding: lock }),
      });
      if (!npm.ok) throw new SetUpError(`'npm ci' ended with ${npm.ending}:\n${lastLines(npm.tail, 15)}`);
    } finally {
      clearInterval(ticking);
    }
    updateStamp({ packages: inputs() });
    say(`installed the npm packages in ${secondsSince(started)} s`);
  },
};

/**
 * Whether an existing node_modules, for example from a plain `npm ci`, matches the lockfile.
 * @param {Record<string, LockedPackage>} wanted
 * @param {Record<string, LockedPackage>} installed
 */
export function isInstalled(wanted, installed) {
  const complete = Object.entries(wanted).every(([path, { version, optional }]) => {
    const found = installed[path];
    return path === "" || (found === undefined ? optional === true : found.version === version);
  });
  return complete && Object.values(installed).every(isForThisMachine);
}

/** @param {LockedPackage} entry */
function isForThisMachine({ os, cpu }) {
  return (os?.includes(process.platform) ?? true) && (cpu?.includes(process.arch) ?? true);
}

/**
 * @param {string} file
 * @returns {Record<string, LockedPackage>}
 */
function readPackages(file) {
  return JSON.parse(readFileSync(file, "utf8")).packages;
}

function inputs() {
  return fingerprint([LOCKFILE], [process.platform, process.arch]);
}

/** @param {number} start */
function secondsSince(start) {
  return Math.round((Date.now() - start) / 1000);
}
