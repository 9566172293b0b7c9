/** The features requested from the host for a world, and the reduced request after a refusal. */
import { PRELOAD_LIBRARY } from "../model/telemetry.ts";
import { LaunchFailed } from "./launch.ts";

/** Features requested from the host. A refusal produces a reduced copy; each try keeps its own immutable request. */
export type Asked = {
  /** Undefined before the first world: the first try goes without a user namespace. */
  readonly userNamespace: boolean | undefined;
  readonly unveilable: ReadonlySet<string>;
  /** The tree with a failed overlay in the last try. */
  readonly doubted: string | undefined;
  /** Why worlds get no cgroup, although the cgroup looked usable. */
  readonly cgroupRefusal: string | undefined;
  /** Why worlds get no network to join. */
  readonly networkRefusal: string | undefined;
  /** Why programs cannot load the telemetry library. */
  readonly preloadRefusal: string | undefined;
};

export const ALL: Asked = {
  userNamespace: undefined,
  unveilable: new Set(),
  doubted: undefined,
  cgroupRefusal: undefined,
  networkRefusal: undefined,
  preloadRefusal: undefined,
};

/** Errors of kernels that never make an overlay over a tree. A temporary shortage must not weaken later worlds. */
const NO_OVERLAY = ["EPERM", "EACCES", "EINVAL", "ENOSYS", "ENODEV", "EOPNOTSUPP"];

/** The helper died before the join: retry with a new helper and the same request. */
const GONE = ["ENOENT", "ESRCH"];

/** The tree vanished between plan and mount, as trees of containers do: the next plan omits it, with the same request. */
const CHANGED = ["ENOENT", "ENOTDIR", "ESTALE"];

/** Returns the reduced request after a refusal; undefined when no reduction would help. Pure. */
export function lessAfter(error: unknown, asked: Asked, library: string | undefined): Asked | undefined {
  if (!(error instanceof LaunchFailed)) return undefined;
  const { step, path, errno } = error;
  const needsRight = step.startsWith("unshare") || step === "join network";
  if (asked.userNamespace === undefined && needsRight && errno === "EPERM")
    return { ...asked, userNamespace: true };
  if (step === "join network" && asked.networkRefusal === undefined)
    return GONE.includes(errno) ? { ...asked } : { ...asked, networkRefusal: error.message };
  // Init cannot be born in the cgroup: the next try and all later worlds go without, and report that.
  if (step === "cgroup" && asked.cgroupRefusal === undefined)
    return { ...asked, cgroupRefusal: error.message };
  // Telemetry decides nothing: a missing library must not keep commands from running.
  if ((path === PRELOAD_LIBRARY || path === library) && asked.preloadRefusal === undefined)
    return { ...asked, preloadRefusal: error.message };
  if (step !== "mount veil" && step !== "mount fill") return undefined;
  if (CHANGED.includes(errno)) return { ...asked };
  if (!NO_OVERLAY.includes(errno)) return undefined;
  // Another process may just have mounted a file system below the tree, unknown to the plan: plan anew before giving up the veil.
  if (asked.doubted !== path) return { ...asked, doubted: path };
  return { ...asked, unveilable: new Set([...asked.unveilable, path]) };
}
