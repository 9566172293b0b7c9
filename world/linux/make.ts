import { release } from "node:os";
import { join } from "node:path";
import type { WorldSpec } from "../model/world.ts";
import type { Isolation } from "../../schemas/generated/types.ts";
import { cgroupWord } from "../cgroup/words.ts";
import { isKernelAtLeast } from "../cgroup/where.ts";
import { WorldGroups } from "../cgroup/world-group.ts";
import { ChangeReader } from "../overlay/change-reader.ts";
import { prepareLayers } from "../overlay/layers.ts";
import { prepareStrays } from "../overlay/strays.ts";
import { mountPlan } from "../plan/mounts.ts";
import { operationLine } from "../plan/operations.ts";
import { telemetryOf } from "../plan/preload.ts";
import { NetworkHelper } from "../network/helper.ts";
import {
  hostsNetwork,
  launchBeside,
  type Networked,
  networkWord,
  requireJudged,
  startNetwork,
} from "../network/launch.ts";
import { SpareNetwork } from "../network/spare.ts";
import { namespaceState, opennessOf } from "../seccomp/openness.ts";
import type { seccompPrograms } from "../seccomp/programs.ts";
import { ALL, type Asked, lessAfter } from "./asked.ts";
import { FoundNames } from "./found-names.ts";
import { hostFacts, linkedResolver } from "./host-facts.ts";
import { isolationVector } from "./isolation.ts";
import { DIRECT, type Launcher } from "./launch.ts";
import { launchLimited } from "./limits.ts";
import { ALWAYS, hasNamespace } from "./namespaces.ts";
import { OwnHomes } from "./own-homes.ts";
import { Replacements } from "./replacements.ts";
import { LinuxWorld } from "./world.ts";

export type LinuxOptions = {
  /** The `substrate-init` program. */
  readonly init: string;
  /** The library with which programs report their actions; absent: no telemetry. */
  readonly preload?: string;
  /** The commands' uid and gid inside: the broker's own. */
  readonly uid: number;
  readonly gid: number;
  /** Holds the stray writes of each world, in a folder named by the world's id. */
  readonly strays: string;
  /** The folder for denied names made by commands. */
  readonly quarantine: string;
  /** Starts init; absent: as a child of the broker. */
  readonly launcher?: Launcher;
  /** Pre-warms a network for the next world, for processes that make many worlds: the process cannot exit before `close`. */
  readonly spareNetwork?: boolean;
};

/** Id and spec of a world to make. */
export type Order = { readonly id: string; readonly spec: WorldSpec };

/** `mountedAt`: the result of {@link prepareLayers} for an overlay, null for direct access. */
type Begun = Order & { readonly mountedAt: bigint | null };

/** Bound of retries: a host has a few dozen trees, so more refused overlays mean a different fault. */
const MAX_RETRIES = 256;

/** Why a world in the host's network namespace has no telemetry. */
const NO_TELEMETRY =
  "programs report by an abstract Unix socket, and in the host's network (world.isolate_network: false) those belong to the host";

/** Makes worlds, and caches the host's refusals so that a refused step is not tried again. */
export class WorldMaker {
  readonly #options: LinuxOptions;
  readonly #programs: ReturnType<typeof seccompPrograms>;
  readonly #launcher: Launcher;
  readonly #groups = new WorldGroups();
  readonly #spare: SpareNetwork | undefined;
  readonly #changes: ChangeReader;
  readonly #replacements: Replacements;
  readonly #found: FoundNames;
  readonly #homes = new OwnHomes();
  #asked: Asked;

  constructor(options: LinuxOptions, programs: ReturnType<typeof seccompPrograms>) {
    this.#options = options;
    this.#programs = programs;
    this.#launcher = options.launcher ?? DIRECT;
    this.#spare = options.spareNetwork === true ? new SpareNetwork(options.init) : undefined;
    this.#changes = new ChangeReader(options.init);
    this.#replacements = new Replacements(options.init);
    this.#found = new FoundNames(options.init);
    const { userNamespace, cgroupRefusal, networkRefusal } = this.#launcher;
    this.#asked = { ...ALL, userNamespace, cgroupRefusal, networkRefusal };
  }

  /** The backend's name in replies. */
  get name(): string {
    return this.#launcher.name;
  }

  /** Removes the broker's cgroups; call after the last world. */
  dropGroups(): void {
    this.#groups.close();
  }

  /** Ends the pre-warmed helpers; finished worlds are unaffected. */
  close(): void {
    this.#spare?.close();
    this.#changes.close();
    this.#found.close();
  }

  /** Throws `WorldUnavailable`; then no process is left, but the layer folders may exist. */
  async make({ id, spec }: Order, signal: AbortSignal): Promise<LinuxWorld> {
    const mountedAt = spec.access.kind === "overlay" ? prepareLayers(spec.access.layers) : null;
    for (let tried = 0; ; tried += 1) {
      const asked = this.#asked;
      try {
        const world = await this.#makeAs({ id, spec, mountedAt }, asked, signal);
        if (asked === this.#asked && asked.doubted !== undefined)
          this.#asked = { ...asked, doubted: undefined };
        return world;
      } catch (error) {
        // A concurrent launch may have recorded the same refusal already.
        if (asked === this.#asked) this.#asked = lessAfter(error, asked, this.#options.preload) ?? asked;
        if (tried === MAX_RETRIES || asked === this.#asked) throw error;
      }
    }
  }

  async #makeAs(order: Begun, asked: Asked, signal: AbortSignal): Promise<LinuxWorld> {
    const start = (until: AbortSignal): Promise<NetworkHelper> =>
      this.#spare?.take(until) ?? NetworkHelper.start(this.#options.init, until);
    const networked =
      order.spec.hostNetwork === true
        ? hostsNetwork(this.#launcher.networkRefusal)
        : await startNetwork(start, asked.networkRefusal, signal);
    try {
      return await this.#makeIn(networked, order, asked, signal);
    } catch (error) {
      networked.network?.end();
      throw error;
    }
  }

  async #makeIn(
    networked: Networked,
    { id, spec, mountedAt }: Begun,
    asked: Asked,
    signal: AbortSignal,
  ): Promise<LinuxWorld> {
    const userNamespace = asked.userNamespace ?? false;
    const kept = join(this.#options.strays, id);
    const { network, beside = false } = networked;
    const namesServed = network !== undefined;
    const { paths: found, cut } = await this.#found.of(spec, signal);
    const hostResolver = beside ? linkedResolver() : undefined;
    const known = {
      found,
      unveilable: asked.unveilable,
      userNamespace,
      namesServed,
      layers: kept,
      hostResolver,
    };
    const host = hostFacts(known);
    const { preload } = this.#options;
    const refusal = beside ? NO_TELEMETRY : asked.preloadRefusal;
    const telemetry = telemetryOf(spec, { library: preload, refusal }, host);
    const reports = telemetry?.on === true;
    const facts = reports ? { ...host, preloadSource: preload } : host;
    const plan = mountPlan(spec, facts);
    if (spec.access.kind === "overlay") this.#changes.warm();
    prepareStrays(plan.kept);
    const own = ALWAYS.filter((name) => name !== "net" || (network === undefined && !beside));
    const namespaces = userNamespace ? (["user", ...own] as const) : own;
    const base = this.#groups.base(asked.cgroupRefusal);
    const state = namespaceState(spec, {
      userNamespace,
      isDirect: this.#launcher === DIRECT,
      overlayKeepsMasks: isKernelAtLeast(release(), 5, 14),
    });
    const openness = opennessOf(state);
    const { uid, gid } = this.#options;
    const { withCgroup, withoutCgroup } = this.#programs(spec.seccomp === "log" ? "log" : openness, {
      besideHost: beside,
      oneUser: userNamespace ? { uid, gid } : undefined,
    });
    // An overlay's upper layer holds every change; init records only direct writes.
    const recorded = spec.access.kind === "direct" ? spec.project : undefined;
    const launch = () =>
      launchLimited(this.#groups, base, spec.limits, userNamespace, (limited) => {
        const { plain, recording } = limited.cgroup === undefined ? withoutCgroup : withCgroup;
        const programs = { ...(recorded === undefined ? plain : recording), recorded };
        const joining = beside ? ("host" as const) : network?.pid;
        const joined = { namespaces, openness, network: joining, plan, reports };
        const asking = { ...this.#options, ...joined, ...programs, ...limited };
        return this.#launcher.launch(id, asking, signal);
      });
    const make = async (): Promise<LinuxWorld> => {
      const launched = await launchBeside(network, spec.network, launch);
      if (beside) requireJudged(launched);
      if (this.#asked.userNamespace === undefined) this.#asked = { ...this.#asked, userNamespace };
      const overlay = spec.access.kind === "overlay";
      const cgroup = cgroupWord(base);
      const alone = hasNamespace(launched.achieved, "net");
      return new LinuxWorld(
        {
          id,
          init: this.#options.init,
          spec,
          mountedAt,
          changes: this.#changes,
          replacements: this.#replacements,
          userxattr: userNamespace,
          isolation: keptForWord(
            () => networkWord(networked, spec.network, alone),
            (network) => ({
              ...isolationVector({
                ...launched,
                overlay,
                unhidden: plan.unhidden,
                bare: plan.bare,
                beyond: plan.beyond,
                cut,
                cgroup,
                seccomp: spec.seccomp,
                namespaces: state,
                network,
                sockets: namesOf(spec, plan.sockets),
              }),
              backend: this.name,
            }),
          ),
          mounts: plan.mounts.map(operationLine),
          immovable: plan.mounts.flatMap((mount) =>
            mount.op === "readonly" || mount.op === "mask" ? [mount.target] : [],
          ),
          strays: plan.kept,
          quarantine: this.#options.quarantine,
          holding: launched.holding,
          network,
          gated: launched.gated,
          namespaces: state,
          telemetry,
          cleanUp: launched.cleanUp,
        },
        launched,
      );
    };
    const { ownHome } = spec;
    return ownHome === undefined ? await make() : await this.#homes.join(ownHome, plan.homePlaces, make);
  }
}

/** Names of the sockets that the plan shares: a denied one, or one that is gone, is not shared. */
function namesOf({ sockets = [] }: WorldSpec, shared: readonly string[]): readonly string[] {
  return sockets.filter(({ target }) => shared.includes(target)).map(({ name }) => name);
}

/** Caches the isolation vector until the network's word changes: all other words are fixed for the world's life. */
function keptForWord(word: () => string, build: (network: string) => Isolation): () => Isolation {
  let kept: Isolation | undefined;
  return () => {
    const now = word();
    if (kept?.net !== now) kept = build(now);
    return kept;
  };
}
