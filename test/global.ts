import type { TestProject } from "vitest/node";
import type { Kind } from "./faults/victims.ts";
import { watchPodmanStorage } from "./podman-storage.ts";
import { recordSkip } from "./skips.ts";
import { createUser, removeLeftOverUsers, removeUser } from "./user-accounts.ts";
import { currentUser, type TestUser } from "./users.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Null when root runs the suite and no user could be made. */
    readonly ordinaryUser: TestUser | null;
    /** How many faults `test/integration/faults.test.ts` makes for each actor, the seed of its choices, and whom alone it kills. */
    readonly faults: { readonly rounds: number; readonly seed: number; readonly kind: Kind | null };
  }
}

/** Once per run: the unprivileged user that the suite makes when root runs it. Returns its removal. */
export default async function prepare(project: TestProject): Promise<() => Promise<void>> {
  const current = currentUser();
  if (current.uid !== 0) {
    recordSkip({ what: "everything as root", why: `the suite is run by '${current.name}'` });
    project.provide("ordinaryUser", current);
    return () => Promise.resolve();
  }
  const releaseStorage = watchPodmanStorage();
  await removeLeftOverUsers();
  const made = await createUser();
  if ("refused" in made) {
    recordSkip({ what: "everything as an ordinary user", why: made.refused });
    project.provide("ordinaryUser", null);
    return () => Promise.resolve(releaseStorage());
  }
  project.provide("ordinaryUser", made);
  return async () => {
    releaseStorage();
    await removeUser(made);
  };
}
