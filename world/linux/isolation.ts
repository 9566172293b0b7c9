import type { Isolation } from "../../schemas/generated/types.ts";
import { hasNamespace, type NamespaceName } from "./namespaces.ts";

/**
 * The isolation vector of a running world, from the namespaces that init reports it has unshared.
 * init drops every capability and sets no_new_privs or does not become ready, so those two are facts of READY, and so is the filter: a world whose filter does not load is not made.
 * What this version does not build is said here, in words, and nowhere claimed.
 */
export function isolationVector(achieved: number, overlay: boolean): Isolation {
  return {
    backend: "linux",
    user: hasNamespace(achieved, "user") ? "on" : "off: not needed, init may unshare without it",
    mount: namespace(achieved, "mount"),
    pid: namespace(achieved, "pid"),
    net: namespace(achieved, "net"),
    ipc: namespace(achieved, "ipc"),
    uts: namespace(achieved, "uts"),
    cgroup: "off: this version sets no limits",
    seccomp: "on",
    no_new_privs: "on",
    capabilities: "none",
    exec_gate: "off: this version judges the command line only",
    overlay: overlay ? "on" : "off",
  };
}

function namespace(achieved: number, name: NamespaceName): string {
  return hasNamespace(achieved, name) ? "on" : "off: not unshared";
}
