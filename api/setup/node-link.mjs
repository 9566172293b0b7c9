import { lstatSync, mkdirSync, renameSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { BUILD } from "./checkout.mjs";
import { say } from "./say.mjs";

const LINK = join(BUILD, "node");

/** Step: `.build/node`, a link to the Node of the set-up: `.build/substrate` starts the same one, whatever PATH says later. */
export const nodeLink = {
  isCurrent: () => lstatSync(LINK, { throwIfNoEntry: false }) !== undefined && !isGone(LINK),

  make() {
    mkdirSync(BUILD, { recursive: true });
    const draft = `${LINK}.${process.pid}.tmp`;
    symlinkSync(process.execPath, draft);
    renameSync(draft, LINK);
    say("linked .build/node");
    return Promise.resolve();
  },
};

/**
 * Whether the link leads nowhere. A Node that this user may not reach is not gone: another user's checkout stays as built.
 * @param {string} path
 */
function isGone(path) {
  try {
    return statSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    return false;
  }
}
