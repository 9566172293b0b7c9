import { join } from "node:path";
import type { WorldSpec } from "../backend.ts";
import { cgroupWord } from "../cgroup/words.ts";
import { WorldGroups } from "../cgroup/world-group.ts";
import { prepareStrays } from "../overlay/strays.ts";
import { type MountPlan, mountPlan } from "../plan/mounts.ts";
import { operationWords } from "../plan/operations.ts";
import type { seccompPrograms } from "../seccomp/programs.ts";
import { hostFacts } from "./host-facts.ts";
import { isolationVector } from "./isolation.ts";
import { DIRECT, LaunchFailed, type Launcher } from "./launch.ts";
import { launchLimited } from "./limits.ts";
import { ALWAYS } from "./namespaces.ts";
import { LinuxWorld } from "./world.ts";

export type LinuxOptions = {
  /** The `substrate-init` program. */
  readonly init: string;
  /** Identity that commands keep inside: the broker's own. */
  readonly uid: number;
  readonly gid: number;
  /** Where each world's stray writes lie, in a folder of its id. */
  readonly strays: string;
  /** Where denied names go that commands made. */
  readonly quarantine: string;
  /** How init is started; absent: as a child of the broker. */
  readonly launcher?: Launcher;
};

/** A host has a few dozen trees; one that refuses more overlays than this has another trouble. */
const MAX_RETRIES = 256;

/** What is asked of the host. It is made less when the host refuses, and never changed: each try knows what it asked. */
type Asked = {
  /** Undefined until a world was made: then the first try is without. */
  readonly userNamespace: boolean | undefined;
  /** Upper layers for stray writes. */
  readonly strays: boolean;
  /** The tree over which the first upper layer failed. */
  readonly suspect: string | undefined;
  readonly unveilable: ReadonlySet<string>;
  /** The tree over which an overlay failed just now. */
  readonly doubted: string | undefined;
  /** Why worlds are made without cgroups, where one that looked usable was not. */
  readonly cgroupRefusal: string | undefined;
};

const ALL: Asked = {
  userNamespace: undefined,
  strays: true,
  suspect: undefined,
  unveilable: new Set(),
  doubted: undefined,
  cgroupRefusal: undefined,
};

/** Makes worlds, and remembers what this host has refused so that it is not tried again. */
export class WorldMaker {
  readonly #options: LinuxOptions;
  readonly #programs: ReturnType<typeof seccompPrograms>;
  readonly #launcher: Launcher;
  readonly #groups = new WorldGroups();
  #asked: Asked;

  constructor(options: LinuxOptions, programs: ReturnType<typeof seccompPrograms>) {
    this.#options = options;
    this.#programs = programs;
    this.#launcher = options.launcher ?? DIRECT;
    const { userNamespace, cgroupRefusal } = this.#launcher;
    this.#asked = { ...ALL, userNamespace, cgroupRefusal };
  }

  /** The backend's name in replies. */
  get name(): string {
    return this.#launcher.name;
  }

  /** Throws `WorldUnavailable`; nothing runs then, but the folders of layers may be there. */
  async make(id: string, spec: WorldSpec, signal: AbortSignal): Promise<LinuxWorld> {
    for (let tried = 0; ; tried += 1) {
      const asked = this.#asked;
      try {
        const world = await this.#makeAs(id, spec, asked, signal);
        if (asked === this.#asked && asked.doubted !== undefined)
          this.#asked = { ...asked, doubted: undefined };
        return world;
      } catch (error) {
        // Another world that began at the same time may have learned the same.
        if (asked === this.#asked) this.#asked = lessAfter(error, asked, spec) ?? asked;
        if (tried === MAX_RETRIES || asked === this.#asked) throw error;
      }
    }
  }

  async #makeAs(id: string, spec: WorldSpec, asked: Asked, signal: AbortSignal): Promise<LinuxWorld> {
    const userNamespace = asked.userNamespace ?? false;
    const strays = asked.strays ? join(this.#options.strays, id) : undefined;
    const plan = mountPlan(spec, hostFacts({ unveilable: asked.unveilable, userNamespace, strays }));
    const layers = strayVeils(plan);
    prepareStrays(layers);
    const namespaces = userNamespace ? (["user", ...ALWAYS] as const) : ALWAYS;
    const base = this.#groups.base(asked.cgroupRefusal);
    const { withCgroup, withoutCgroup } = this.#programs[spec.seccomp];
    const launched = await launchLimited(this.#groups, base, spec.limits, userNamespace, (limited) => {
      const programs = limited.cgroup === undefined ? withoutCgroup : withCgroup;
      return this.#launcher.launch(
        id,
        { ...this.#options, namespaces, plan, ...programs, ...limited },
        signal,
      );
    });
    if (this.#asked.userNamespace === undefined) this.#asked = { ...this.#asked, userNamespace };
    const overlay = spec.access.kind === "overlay";
    return new LinuxWorld(
      {
        id,
        spec,
        isolation: {
          ...isolationVector({
            ...launched,
            overlay,
            unhidden: plan.unhidden,
            cgroup: cgroupWord(base),
            seccomp: spec.seccomp,
          }),
          backend: this.name,
        },
        mounts: plan.mounts.map((mount) => operationWords(mount).join(" ")),
        strays: layers,
        quarantine: this.#options.quarantine,
        holding: launched.holding,
        cleanUp: launched.cleanUp,
      },
      launched,
    );
  }
}

/** What a kernel says that makes no overlay over a tree, ever. What is scarce for a moment must not weaken later worlds. */
const NO_OVERLAY = ["EPERM", "EACCES", "EINVAL", "ENOSYS", "ENODEV", "EOPNOTSUPP"];

/** A tree that went between plan and mount, as those of containers do: the next plan is without it, and asks no less. */
const CHANGED = ["ENOENT", "ENOTDIR", "ESTALE"];

/** What to ask after a refusal; undefined when nothing less would help. Pure. */
function lessAfter(error: unknown, asked: Asked, spec: WorldSpec): Asked | undefined {
  if (!(error instanceof LaunchFailed)) return undefined;
  const { step, path, errno } = error;
  if (asked.userNamespace === undefined && step.startsWith("unshare") && errno === "EPERM")
    return { ...asked, userNamespace: true };
  // What init cannot be born in is none: the next try, and all later worlds, go without, and say so.
  if (step === "cgroup" && asked.cgroupRefusal === undefined)
    return { ...asked, cgroupRefusal: error.message };
  if (step !== "mount veil") return undefined;
  if (CHANGED.includes(errno)) return { ...asked };
  if (!NO_OVERLAY.includes(errno)) return undefined;
  // Something may just have been mounted below it, which the plan did not know of: looked at anew before it weakens.
  if (asked.doubted !== path) return { ...asked, doubted: path };
  // An upper layer asks more of its file system than a lower one: without it the same tree is tried once more.
  if (asked.strays && spec.strays === "kept") return { ...asked, strays: false, suspect: path };
  const unveilable = new Set([...asked.unveilable, path]);
  return { ...asked, unveilable, strays: asked.strays || asked.suspect === path };
}

function strayVeils(plan: MountPlan): readonly { readonly target: string; readonly layers: string }[] {
  return plan.mounts.flatMap((mount) =>
    mount.op === "veil" && mount.layers !== undefined ? [{ target: mount.target, layers: mount.layers }] : [],
  );
}
