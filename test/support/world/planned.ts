/** A spec and a host for plans that are tested as data. */
import type { WorldSpec } from "../../../world/backend.ts";
import type { MountPlan } from "../../../world/plan/mounts.ts";
import type { HostFacts, PathKind } from "../../../world/plan/host-facts.ts";
import { operationWords } from "../../../world/plan/operations.ts";

export const PROJECT = "/home/ann/work";

export function spec(change: Partial<WorldSpec> = {}): WorldSpec {
  const files = { read: ["/**"], denyRead: [], write: [`${PROJECT}/**`], denyWrite: [], seal: [] };
  return {
    project: PROJECT,
    identity: "1:2",
    access: { kind: "direct" },
    files,
    hidden: [],
    limits: {},
    seccomp: "enforce",
    network: { ports: [], ranges: [] },
    sealed: [],
    ...change,
  };
}

/** A host where everything is a folder but what is named. */
export function host(
  kinds: Readonly<Record<string, PathKind>> = {},
  links: Readonly<Record<string, string>> = {},
): HostFacts {
  return {
    kind: (path) => kinds[path] ?? (path in links ? "symlinked" : "folder"),
    real: (path) => (kinds[path] === "missing" ? undefined : (links[path] ?? path)),
    folders: (path) => (path === "/" ? ["home", "usr", "var", "tmp"] : []),
    mountPoints: ["/", "/proc"],
    found: [],
    otherNames: () => [],
    datagramSockets: [],
    unveilable: new Set(),
    userNamespace: false,
    namesServed: false,
    hostname: "here",
  };
}

export function lines(plan: MountPlan): readonly string[] {
  return plan.mounts.map((operation) => operationWords(operation).join(" "));
}
