import type { Isolation } from "../../schemas/generated/types.ts";
import type { WorldSpec } from "../model/world.ts";
import { MAX_PARTS } from "../plan/host-trees.ts";
import { type NamespaceState, opennessOf, STATE_WORDS } from "../seccomp/openness.ts";
import { hasNamespace, type NamespaceName } from "./namespaces.ts";

/** Names the calls refused even in log mode (`inLogMode`), so that the text claims no more than the filter does. */
const LOG_MODE =
  "degraded: log mode refuses only calls that would open files or the network or hide other calls: nested user namespaces, io_uring, VSOCK, calls by i386 or x32";

const UNGATED =
  "off: rules apply to the command line only, because this kernel does not report program starts, or another sandbox receives the reports";

const UNDECIDED =
  "degraded: host Unix sockets in writable folders can be reached, because this kernel does not report connects, or another sandbox receives the reports";

export type Achievements = {
  /** Bits of the namespaces unshared by init. */
  readonly achieved: number;
  /** Number of folders without a watch for denied names. */
  readonly unwatched: number;
  /** Host trees that show changes late. */
  readonly unrefreshed: number;
  /** Whether every start of a program can be gated. */
  readonly gated: boolean;
  /** Denied names outside the project that are only masked, because the kernel makes no overlay there. */
  readonly unhidden: number;
  /** Host trees without an overlay, refused by the kernel. */
  readonly bare: readonly string[];
  /** Host trees beyond the maximum of a plan. */
  readonly beyond: number;
  /** The search for names denied in every tree was cut short. */
  readonly cut: boolean;
  readonly overlay: boolean;
  /** Text from `cgroupWord`. */
  readonly cgroup: string;
  readonly seccomp: WorldSpec["seccomp"];
  readonly namespaces: NamespaceState;
  /** Text from `networkWord`. */
  readonly network: string;
  /** The host's sockets that commands may connect to, by their names in the policy. */
  readonly sockets: readonly string[];
};

/**
 * Returns the isolation vector of a running world, from the namespaces reported by init. Three facts follow from READY: init
 * becomes ready only after dropping every capability, setting no_new_privs and loading the filter. Isolation missing in this
 * version is stated in words.
 */
export function isolationVector({
  achieved,
  unwatched,
  unrefreshed,
  gated,
  unhidden,
  bare,
  beyond,
  cut,
  overlay,
  seccomp,
  namespaces,
  cgroup,
  network,
  sockets,
}: Achievements): Isolation {
  return {
    backend: "linux",
    user: userWord(achieved, namespaces),
    mount: mountWord({ achieved, unwatched, unrefreshed, unhidden, bare, beyond, cut, gated }),
    pid: namespace(achieved, "pid"),
    net: network,
    ipc: withSockets(namespace(achieved, "ipc"), sockets),
    uts: namespace(achieved, "uts"),
    cgroup,
    seccomp: seccomp === "log" ? LOG_MODE : "on",
    no_new_privs: "on",
    capabilities:
      opennessOf(namespaces) === "closed" ? "none" : "none, except inside namespaces that commands make",
    exec_gate: gated ? "on" : UNGATED,
    overlay: overlay ? "on" : "off",
  };
}

function mountWord({
  achieved,
  unwatched,
  unrefreshed,
  unhidden,
  bare,
  beyond,
  cut,
  gated,
}: Pick<
  Achievements,
  "achieved" | "unwatched" | "unrefreshed" | "unhidden" | "bare" | "beyond" | "cut" | "gated"
>): string {
  if (!gated) return UNDECIDED;
  if (cut)
    return "degraded: the search for denied names in the host's trees was cut off (8 seconds, a million folders or 4,096 names): names not found are not hidden in this world";
  if (unrefreshed > 0)
    return `degraded: a change that the host makes in ${unrefreshed} of its trees is seen late, because this kernel cannot drop an overlay's cached names, or there are too many trees to refresh`;
  if (beyond > 0)
    return `degraded: ${beyond} of the host's trees (mounts below its folders) are shown unchanged or not at all: a world places ${MAX_PARTS}, and denied names and sockets in the others are not hidden`;
  if (unwatched > 0) return unwatchedFolders(unwatched);
  if (unhidden === 0 && bare.length > 0)
    return `degraded: ${bare.length} of the host's trees (${listed(bare)}) are shown unchanged, with the named pipes of the host's programs: the kernel cannot make an overlay over them`;
  if (unhidden === 0) return namespace(achieved, "mount");
  return `degraded: ${unhidden} denied names outside of the project are masked if they existed when the world began, but not hidden: the kernel cannot make an overlay there`;
}

const MOST_LISTED = 3;

function listed(paths: readonly string[]): string {
  const more = paths.length - MOST_LISTED;
  return [...paths.slice(0, MOST_LISTED), ...(more > 0 ? [`${more} more`] : [])].join(", ");
}

function unwatchedFolders(count: number): string {
  return `degraded: a denied name that appears in ${count} of the project's folders is noticed only by a full search when a command begins or ends: fs.inotify.max_user_watches or max_user_instances is reached`;
}

function userWord(achieved: number, state: NamespaceState): string {
  const more = STATE_WORDS[state];
  if (hasNamespace(achieved, "user")) return more === undefined ? "on" : `on: ${more}`;
  return `off: not needed, because init may unshare without it${more === undefined ? "" : `; ${more}`}`;
}

function withSockets(word: string, sockets: readonly string[]): string {
  if (sockets.length === 0) return word;
  return `${word}${word.includes(":") ? "; " : ": "}commands may connect to the host's ${sockets.join(", ")}`;
}

function namespace(achieved: number, name: NamespaceName): string {
  return hasNamespace(achieved, name) ? "on" : "off: not unshared";
}
