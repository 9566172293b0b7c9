import { existsSync, readdirSync } from "node:fs";
import type { Config } from "../../broker/settings/config.ts";
import type { Home } from "../../broker/settings/home.ts";
import type { Follower } from "../../broker/spans/follower.ts";
import { traceLimits } from "../../broker/spans/retention.ts";
import type { OnFault } from "../../broker/spans/span-index.ts";
import { Trace } from "../../broker/spans/trace.ts";
import type { Log } from "../http/context.ts";

/** Interval of progress lines during long work. */
const PROGRESS_MS = 2000;

/** Opens the home's trace with the limits of the settings; logs the progress of an index rebuild. */
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
    // Each folder holds the changes of a span and has the span's id as name.
    held: () => (existsSync(home.overlay) ? readdirSync(home.overlay) : []),
    onProgress: (read, all) => {
      if (read < all && Date.now() - said < PROGRESS_MS) return;
      said = Date.now();
      log.info({ read, all }, "Rebuilding the index of the trace");
    },
  });
}
