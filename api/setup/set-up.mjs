import { bundle } from "./bundle.mjs";
import { withLock } from "./lock.mjs";
import { front, init, preload, sh, shim } from "./native.mjs";
import { nodeLink } from "./node-link.mjs";
import { requireNode } from "./node-version.mjs";
import { packages } from "./packages.mjs";
import { prebuilds } from "./prebuilds.mjs";
import { say } from "./say.mjs";
import { readStamp } from "./stamp.mjs";
import { tools } from "./tools.mjs";
import { validators } from "./validators.mjs";

/**
 * A step of the set-up. `isCurrent` changes nothing; `make` may be repeated at any time. `advice`: a line on work left for a
 * person, also from a current step, for example one without the rights to install.
 * @typedef {{
 *   isCurrent(stamp: import("./stamp.mjs").Stamp): boolean,
 *   make(lock: number | undefined): Promise<void>,
 *   advice?(): string | undefined,
 * }} Step
 */

/** The C of this project is Linux only. Elsewhere the launchers in `api/bin` stand for the front. @type {readonly Step[]} */
const NATIVE = process.platform === "linux" ? [init, shim, nodeLink, front, sh, preload] : [];

/** @type {readonly Step[]} */
export const BUILD_ONLY = [...NATIVE, prebuilds, validators, bundle];

/** All steps in order of dependency: generator and bundler are packages, the bundle contains the validators. @type {readonly Step[]} */
export const EVERYTHING = [packages, ...(process.platform === "linux" ? [tools] : []), ...BUILD_ONLY];

/**
 * Makes the checkout ready to run. Safe to repeat and to run concurrently.
 * @param {readonly Step[]} steps
 */
export async function setUp(steps) {
  requireNode(process.versions.node);
  // Without pending steps take no lock, so another user's built checkout can be used.
  if (pending(steps).length === 0) return sayWhatIsLeft(steps, "nothing to do");
  await withLock(async (lock) => {
    for (const step of steps) {
      if (!step.isCurrent(readStamp())) await step.make(lock);
    }
  });
  sayWhatIsLeft(steps);
}

/** @param {readonly Step[]} steps */
function pending(steps) {
  const stamp = readStamp();
  return steps.filter((step) => !step.isCurrent(stamp));
}

/**
 * @param {readonly Step[]} steps
 * @param {string} [done] printed even without advice
 */
function sayWhatIsLeft(steps, done) {
  const advice = steps.flatMap((step) => step.advice?.() ?? []).join("; ");
  const words = [done, advice].filter((part) => part !== undefined && part !== "");
  if (words.length > 0) say(words.join(", but "));
}
