/** What is asked of a host that makes a world, and what is asked after it has refused. */
import { PRELOAD_LIBRARY } from "../model/telemetry.ts";
import { LaunchFailed } from "./launch.ts";

/** What is asked of the host. It is made less when the host refuses, and never changed: each try knows what it asked. */
export type Asked = {
  /** Undefined until a world was made: then the first try is without. */
  readonly userNamespace: boolean | undefined;
  readonly unveilable: ReadonlySet<string>;
  /** The tree over which an overlay failed just now. */
  readonly doubted: string | undefined;
  /** Why worlds are made without cgroups, where one that looked usable was not. */
  readonly cgroupRefusal: string | undefined;
  /** Why worlds are made without a network to join. */
  readonly networkRefusal: string | undefined;
  /** Why no program can load the library that reports. */
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

/** What a kernel says that makes no overlay over a tree, ever. What is scarce for a moment must not weaken later worlds. */
const NO_OVERLAY = ["EPERM", "EACCES", "EINVAL", "ENOSYS", "ENODEV", "EOPNOTSUPP"];

/** The helper was killed before it could be joined: another one is no less. */
const GONE = ["ENOENT", "ESRCH"];

/** A tree that went between plan and mount, as those of containers do: the next plan is without it, and asks no less. */
const CHANGED = ["ENOENT", "ENOTDIR", "ESTALE"];

/** What to ask after a refusal; undefined when nothing less would help. Pure. */
export function lessAfter(error: unknown, asked: Asked, library: string | undefined): Asked | undefined {
  if (!(error instanceof LaunchFailed)) return undefined;
  const { step, path, errno } = error;
  const needsRight = step.startsWith("unshare") || step === "join network";
  if (asked.userNamespace === undefined && needsRight && errno === "EPERM")
    return { ...asked, userNamespace: true };
  if (step === "join network" && asked.networkRefusal === undefined)
    return GONE.includes(errno) ? { ...asked } : { ...asked, networkRefusal: error.message };
  // What init cannot be born in is none: the next try, and all later worlds, go without, and say so.
  if (step === "cgroup" && asked.cgroupRefusal === undefined)
    return { ...asked, cgroupRefusal: error.message };
  // It decides nothing, so what is not there keeps no command from running.
  if ((path === PRELOAD_LIBRARY || path === library) && asked.preloadRefusal === undefined)
    return { ...asked, preloadRefusal: error.message };
  if (step !== "mount veil" && step !== "mount fill") return undefined;
  if (CHANGED.includes(errno)) return { ...asked };
  if (!NO_OVERLAY.includes(errno)) return undefined;
  // Something may just have been mounted below it, which the plan did not know of: looked at anew before it weakens.
  if (asked.doubted !== path) return { ...asked, doubted: path };
  return { ...asked, unveilable: new Set([...asked.unveilable, path]) };
}
