import { existsSync, readdirSync } from "node:fs";
import type { Config } from "../../broker/settings/config.ts";
import type { Home } from "../../broker/settings/home.ts";
import type { Follower } from "../../broker/spans/follower.ts";
import { traceLimits } from "../../broker/spans/retention.ts";
import type { OnFault } from "../../broker/spans/span-index.ts";
import { Trace } from "../../broker/spans/trace.ts";
import type { Log } from "../http/context.ts";

/** How often long work says how far it is. */
const PROGRESS_MS = 2000;

/** The trace of a home as its settings want it, and what it says of long work. */
export function openTrace(
  home: Home,
  config: Config,
  onFault: OnFault,
  followers: readonly Follower[],
  log: Log,
): Promise<Trace> {
  let said = Date.now();
  return Trace.open(home.trace, home.database, config.current().trace?.sync ?? false, onFault, followers, {
    limits: () => traceLimits(config.current().trace ?? {}),
    // Each folder there is named for the span whose changes it holds.
    held: () => (existsSync(home.overlay) ? readdirSync(home.overlay) : []),
    onProgress: (read, all) => {
      if (read < all && Date.now() - said < PROGRESS_MS) return;
      said = Date.now();
      log.info({ read, all }, "The index of the trace is being made again");
    },
  });
}
