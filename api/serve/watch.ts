import { watch } from "chokidar";
import { basename } from "node:path";
import type { Broker } from "../../broker/broker.ts";
import type { Log } from "../http/context.ts";

/**
 * Loads a policy as soon as its file changes, so that the log names a mistake before the next command meets it and
 * that command need not wait. Only a head start: each decision compares the file itself.
 */
export async function watchPolicies(broker: Broker, log: Log): Promise<() => Promise<void>> {
  const watcher = watch(broker.home.policies, { depth: 0, ignoreInitial: true });
  const load = (path: string): void => {
    if (path.endsWith(".yaml")) broker.policies.show(basename(path, ".yaml"));
  };
  watcher.on("add", load).on("change", load);
  watcher.on("error", (error) =>
    log.warn({ err: error }, "Policies are not watched; each command still compares them"),
  );
  await new Promise<void>((resolve) => watcher.once("ready", () => resolve()));
  return () => watcher.close();
}
