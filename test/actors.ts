import { inject } from "vitest";
import { recordSkip } from "./skips.ts";
import { currentUser, ordinaryUser, type TestUser } from "./users.ts";

/** Who a test is repeated as. `kind` stands in the test's title. */
export type Actor = TestUser & { readonly kind: "root" | "an ordinary user" };

/**
 * Root, when root runs the suite, and the ordinary user, when there is one. What is missing has its SKIP line. With
 * SUBSTRATE_TEST_ACTORS=self only whoever runs the suite.
 */
export function actors(): readonly Actor[] {
  return inject("onlySelf") ? everyActor().filter(({ uid }) => uid === currentUser().uid) : everyActor();
}

/** The same whatever SUBSTRATE_TEST_ACTORS says: for what an ordinary user meets only where root has prepared it. */
export function everyActor(): readonly Actor[] {
  const ordinary = ordinaryUser();
  const root = currentUser().uid === 0 ? [{ ...currentUser(), kind: "root" } as const] : [];
  const user = ordinary === null ? [] : [{ ...ordinary, kind: "an ordinary user" } as const];
  if (root.length + user.length === 0)
    recordSkip({ what: "every test with a broker", why: "there is nobody to run it as" });
  return [...root, ...user];
}
