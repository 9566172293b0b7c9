import { join } from "node:path";
import type { WorldSpec } from "../backend.ts";
import { prepareStrays } from "../overlay/strays.ts";
import { type MountPlan, mountPlan } from "../plan/mounts.ts";
import { operationWords } from "../plan/operations.ts";
import type { seccompPrograms } from "../seccomp/programs.ts";
import { hostFacts } from "./host-facts.ts";
import { isolationVector } from "./isolation.ts";
import { LaunchFailed, launchInit } from "./launch.ts";
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
};

/** A host has a few dozen trees; one that refuses more overlays than this has another trouble. */
const MAX_RETRIES = 128;

/** Makes worlds, and remembers what this host has refused so that it is not tried again. */
export class WorldMaker {
  readonly #options: LinuxOptions;
  readonly #programs: ReturnType<typeof seccompPrograms>;
  readonly #unveilable = new Set<string>();
  /** Whether upper layers are tried, and the tree over which the first one failed. */
  #strays = true;
  #suspect: string | undefined;
  /** Whether a user namespace is needed: found out by the first world, by trying. */
  #userNamespace: boolean | undefined;

  constructor(options: LinuxOptions, programs: ReturnType<typeof seccompPrograms>) {
    this.#options = options;
    this.#programs = programs;
  }

  /** Throws `WorldUnavailable`; nothing runs then, but the folders of layers may be there. */
  async make(id: string, spec: WorldSpec, signal: AbortSignal): Promise<LinuxWorld> {
    for (let tried = 0; ; tried += 1) {
      try {
        return await this.#makeAs(id, spec, this.#userNamespace ?? false, signal);
      } catch (error) {
        if (tried === MAX_RETRIES || !this.#learnsFrom(error, spec)) throw error;
      }
    }
  }

  async #makeAs(
    id: string,
    spec: WorldSpec,
    userNamespace: boolean,
    signal: AbortSignal,
  ): Promise<LinuxWorld> {
    const strays = this.#strays ? join(this.#options.strays, id) : undefined;
    const plan = mountPlan(spec, hostFacts({ unveilable: this.#unveilable, userNamespace, strays }));
    const layers = await prepareStrays(strayVeils(plan));
    const launched = await launchInit(
      {
        ...this.#options,
        namespaces: userNamespace ? ["user", ...ALWAYS] : ALWAYS,
        plan,
        ...this.#programs[spec.seccomp],
      },
      signal,
    );
    this.#userNamespace = userNamespace;
    return new LinuxWorld(
      {
        id,
        spec,
        isolation: isolationVector({
          ...launched,
          overlay: spec.access.kind === "overlay",
          seccomp: spec.seccomp,
        }),
        mounts: plan.mounts.map((mount) => operationWords(mount).join(" ")),
        strays: layers,
        quarantine: this.#options.quarantine,
      },
      launched,
    );
  }

  /** True when another try may succeed, because less is asked of the host. */
  #learnsFrom(error: unknown, spec: WorldSpec): boolean {
    if (!(error instanceof LaunchFailed)) return false;
    if (this.#userNamespace === undefined && error.step.startsWith("unshare") && error.errno === "EPERM") {
      this.#userNamespace = true;
      return true;
    }
    if (error.step !== "mount veil" || this.#unveilable.has(error.path)) return false;
    // An upper layer asks more of its file system than a lower one: without it the same tree is tried once more.
    if (this.#strays && spec.strays === "kept") {
      this.#strays = false;
      this.#suspect = error.path;
      return true;
    }
    this.#unveilable.add(error.path);
    this.#strays ||= this.#suspect === error.path;
    return true;
  }
}

function strayVeils(plan: MountPlan): readonly { readonly target: string; readonly layers: string }[] {
  return plan.mounts.flatMap((mount) =>
    mount.op === "veil" && mount.layers !== undefined ? [{ target: mount.target, layers: mount.layers }] : [],
  );
}
