import { expect, test } from "vitest";
import { isolationVector } from "../../../../world/linux/isolation.ts";
import { ALWAYS, namespaceBits } from "../../../../world/linux/namespaces.ts";
import type { HostFacts } from "../../../../world/plan/host-facts.ts";
import { mountPlan } from "../../../../world/plan/mounts.ts";
import { host, spec } from "../../../support/world/planned.ts";

/** The word for `mount` in the isolation vector of a world whose other parts are complete. */
function mountWord(lacks: { readonly beyond?: number; readonly bare?: readonly string[] }): string {
  const none = { unwatched: 0, unrefreshed: 0, unhidden: 0, bare: [], beyond: 0, cut: false, overlay: false };
  const rest = { cgroup: "on", network: "on", seccomp: "enforce", namespaces: "denied" } as const;
  const achieved = { achieved: namespaceBits(ALWAYS), gated: true, sockets: [] };
  return isolationVector({ ...achieved, ...none, ...rest, ...lacks }).mount;
}

test("host trees beyond those that a plan places are counted, and the vector says so", () => {
  const points = Array.from({ length: 600 }, (_each, at) => `/srv/m${at}`);
  const facts: HostFacts = {
    ...host(),
    folders: (path) => (path === "/" ? ["srv"] : []),
    mountPoints: ["/", ...points],
  };
  expect(mountPlan(spec(), facts).beyond).toBe(89);
  expect(mountWord({ beyond: 0 })).toBe("on");
  expect(mountWord({ beyond: 89 })).toMatch(/^degraded: 89 of the host's trees .* a world places 512/);
});

test("trees without an overlay are named, the first three of them", () => {
  const bare = ["/media/one", "/media/two", "/media/three", "/media/four"];
  expect(mountWord({ bare })).toMatch(
    /^degraded: 4 of the host's trees \(\/media\/one, \/media\/two, \/media\/three, 1 more\) are shown unchanged/,
  );
});
