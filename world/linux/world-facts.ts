import type { NamespaceState } from "../seccomp/openness.ts";
import type { Isolation } from "../../schemas/generated/types.ts";
import type { WorldSpec } from "../model/world.ts";
import type { WorldTelemetry } from "../model/telemetry.ts";
import type { Holding } from "../cgroup/words.ts";
import type { NetworkHelper } from "../network/helper.ts";
import type { ChangeReader } from "../overlay/change-reader.ts";
import type { StrayLayer } from "../overlay/strays.ts";
import type { Replacements } from "./replacements.ts";

/** Properties of a world, known when the world is made. */
export type WorldFacts = {
  readonly id: string;
  /** The `substrate-init` program. */
  readonly init: string;
  readonly spec: WorldSpec;
  /** Returns the present value. */
  readonly isolation: () => Isolation;
  readonly mounts: readonly string[];
  /** Paths that the plan keeps from being written or seen. */
  readonly immovable: readonly string[];
  readonly strays: readonly StrayLayer[];
  /** The folder for denied names made by commands. */
  readonly quarantine: string;
  readonly holding: Holding;
  readonly network: NetworkHelper | undefined;
  readonly namespaces: NamespaceState;
  /** Whether program starts can be gated. */
  readonly gated: boolean;
  readonly mountedAt: bigint | null;
  /** Undefined: not requested by the spec. */
  readonly telemetry: WorldTelemetry | undefined;
  /** Shared by all worlds of the backend. */
  readonly replacements: Replacements;
  readonly changes: ChangeReader;
  /** Whether the world's overlays keep their marks in `user.` xattrs, as an ordinary user's overlay does. */
  readonly userxattr: boolean;
  /** Releases host resources after the world is gone. */
  readonly cleanUp: () => void;
};
