import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import type { TestProject } from "vitest/node";
import { SLOW_FILES } from "../../lanes/choice.mjs";
import type { Kind } from "../../faults/victims.ts";
import { type TestUser, currentUser } from "../users/users.ts";
import { makeHome, removeHome, removeLeftOverHomes } from "./homes.ts";
import { recordSkip } from "./skips.ts";
import { createUser, removeLeftOverUsers, removeUser } from "./user-accounts.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Null when root runs the suite and no user could be made. */
    readonly ordinaryUser: TestUser | null;
    /** Whether tests are repeated as whoever runs the suite only. */
    readonly onlySelf: boolean;
    /** Which rows `test/fidelity/fidelity.test.ts` runs and against what, and the file that it writes its table to. */
    readonly fidelity: { readonly extent: "quick" | "all" | "bare"; readonly report: string | null };
    /** How many faults `test/integration/faults.test.ts` makes for each actor, the seed of its choices, and whom alone it kills. */
    readonly faults: { readonly rounds: number; readonly seed: number; readonly kind: Kind | null };
  }
}

/** Not where a person's programs keep what they know: theirs are a run's own too. */
const FOLDERS_OF_A_PERSON = ["XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"];

/**
 * Once per run: a home folder for whoever runs the suite, and the unprivileged user that the suite makes when root runs
 * it. Returns their removal.
 */
export default async function prepare(project: TestProject): Promise<() => Promise<void>> {
  if (process.env["SUBSTRATE_TEST_EXTENT"] === "quick")
    recordSkip({ what: `${SLOW_FILES.length} slow files`, why: "'npm run test:slow' runs them" });
  const onlySelf = isOnlySelf();
  project.provide("onlySelf", onlySelf);
  const removeOwnHome = moveHome();
  const current = currentUser();
  if (current.uid !== 0) {
    recordSkip({ what: "everything as root", why: `the suite is run by '${current.name}'` });
    project.provide("ordinaryUser", current);
    return () => Promise.resolve(removeOwnHome());
  }
  const releaseStorage = watchPodmanStorage();
  await removeLeftOverUsers();
  const made = await createUser();
  if ("refused" in made) recordSkip({ what: "everything as an ordinary user", why: made.refused });
  if (onlySelf)
    recordSkip({
      what: "most as an ordinary user",
      why: "'npm run test:plain-user' does that; SUBSTRATE_TEST_ACTORS=every does it here",
    });
  project.provide("ordinaryUser", "refused" in made ? null : made);
  return async () => {
    releaseStorage();
    if (!("refused" in made)) await removeUser(made);
    removeOwnHome();
  };
}

function isOnlySelf(): boolean {
  const who = process.env["SUBSTRATE_TEST_ACTORS"];
  if (who !== undefined && who !== "self" && who !== "every")
    throw new Error(`Cannot use SUBSTRATE_TEST_ACTORS='${who}': it must be 'self' or 'every'`);
  return who === "self";
}

/** The workers inherit HOME, so what they call in this process and the programs they start all have the new one. */
function moveHome(): () => void {
  const before = homedir();
  removeLeftOverHomes(before);
  const home = makeHome(before);
  process.env["HOME"] = home;
  for (const name of FOLDERS_OF_A_PERSON) delete process.env[name];
  return () => removeHome(home);
}

// What podman leaves of itself where a container of root ended by a kill.

/** A mount of its own while a container of root is there. One that is killed leaves it, until podman is called again. */
const STORAGE = "/var/lib/containers/storage/overlay";

/** Call it before the first container; the result, after the last one, takes back what came in between. */
export function watchPodmanStorage(): () => void {
  const before = isMounted();
  return () => {
    if (before || !isMounted()) return;
    // Not lazily: while a container of anybody's runs, it stays.
    const { status, stderr } = spawnSync("umount", [STORAGE], { encoding: "utf8" });
    if (status !== 0) process.stderr.write(`podman's '${STORAGE}' stays mounted: ${stderr.trim()}\n`);
  };
}

function isMounted(): boolean {
  const points = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4]);
  return points.includes(STORAGE);
}
