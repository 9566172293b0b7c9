import { watch } from "chokidar";
import { basename, dirname } from "node:path";
import type { Broker } from "../../broker/broker.ts";
import type { Log } from "../http/context.ts";

/**
 * Loads a policy, or the settings, as soon as the file changes: the log names a mistake before the next command meets it,
 * that command need not wait, and an agent that is named now has its socket. Only a head start: each decision compares the file itself.
 */
export async function watchFiles(broker: Broker, log: Log): Promise<() => Promise<void>> {
  const { root, policies, config } = broker.home;
  // A file that is not there yet is only seen through its folder; nothing else in that is looked at.
  const ignored = (path: string): boolean => dirname(path) === root && path !== policies && path !== config;
  const watcher = watch([root, policies], { depth: 0, ignoreInitial: true, ignored });
  const load = (path: string): void => {
    if (path === config) broker.config();
    else if (path.endsWith(".yaml")) broker.policies.show(basename(path, ".yaml"));
  };
  watcher.on("add", load).on("change", load);
  watcher.on("error", (error) =>
    log.warn({ err: error }, "Policies and settings are not watched; each command still compares them"),
  );
  await new Promise<void>((resolve) => watcher.once("ready", () => resolve()));
  // What was written since the broker read it, before anybody watched.
  broker.config();
  return () => watcher.close();
}
