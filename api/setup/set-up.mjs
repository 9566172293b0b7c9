import { bundle } from "./bundle.mjs";
import { withLock } from "./lock.mjs";
import { init, preload, shim } from "./native.mjs";
import { requireNode } from "./node-version.mjs";
import { packages } from "./packages.mjs";
import { say } from "./say.mjs";
import { readStamp } from "./stamp.mjs";
import { tools } from "./tools.mjs";
import { validators } from "./validators.mjs";

/**
 * A part of set-up. `isCurrent` looks and changes nothing; `make` may run again at any time. `advice` is one line on
 * what is left for a person to do, also when `isCurrent` because nobody here may do it.
 * @typedef {{
 *   isCurrent(stamp: import("./stamp.mjs").Stamp): boolean,
 *   make(lock: number | undefined): Promise<void>,
 *   advice?(): string | undefined,
 * }} Step
 */

/** In this order: the generator and the bundler are packages, and the bundle has the validators. @type {readonly Step[]} */
export const EVERYTHING = [packages, tools, init, shim, preload, validators, bundle];

/** @type {readonly Step[]} */
export const BUILD_ONLY = [init, shim, preload, validators, bundle];

/**
 * Brings the checkout to where it can run. Safe to repeat, and from two places at once.
 * @param {readonly Step[]} steps
 */
export async function setUp(steps) {
  requireNode(process.versions.node);
  // Looking needs no lock, so a checkout that another user owns and has built can be used.
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
 * @param {string} [done] what there is to say without advice
 */
function sayWhatIsLeft(steps, done) {
  const advice = steps.flatMap((step) => step.advice?.() ?? []).join("; ");
  const words = [done, advice].filter((part) => part !== undefined && part !== "");
  if (words.length > 0) say(words.join(", but "));
}
