import type { Isolation } from "../../schemas/generated/types.ts";
import type { WorldSpec } from "../model/world.ts";
import type { WorldTelemetry } from "../model/telemetry.ts";
import type { Holding } from "../cgroup/words.ts";
import type { NetworkHelper } from "../network/helper.ts";
import type { ChangeReader } from "../overlay/change-reader.ts";
import type { StrayLayer } from "../overlay/strays.ts";
import type { Replacements } from "./replacements.ts";

/** What is known of a world when it is made. */
export type WorldFacts = {
  readonly id: string;
  /** The `substrate-init` program. */
  readonly init: string;
  readonly spec: WorldSpec;
  /** As it is whenever it is asked. */
  readonly isolation: () => Isolation;
  readonly mounts: readonly string[];
  readonly strays: readonly StrayLayer[];
  /** Where denied names go that commands made. */
  readonly quarantine: string;
  readonly holding: Holding;
  readonly network: NetworkHelper | undefined;
  /** Whether gates hold. */
  readonly gated: boolean;
  readonly mountedAt: bigint | null;
  /** Undefined: its spec does not ask. */
  readonly telemetry: WorldTelemetry | undefined;
  /** Of all worlds of the backend. */
  readonly replacements: Replacements;
  readonly changes: ChangeReader;
  /** Whether an overlay of it keeps its marks as an ordinary user's does. */
  readonly userxattr: boolean;
  /** What is left to be done when the world is gone. */
  readonly cleanUp: () => void;
};
