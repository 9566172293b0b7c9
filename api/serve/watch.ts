import { watch } from "chokidar";
import { basename, dirname } from "node:path";
import type { Broker } from "../../broker/broker.ts";
import type { Log } from "../http/context.ts";

/** Interval of looking at the settings where the kernel gives no watch: a user has only 128 inotify instances. */
const LOOK_MS = 2000;

const CANNOT_WATCH = "Cannot watch policies and settings; each command still checks them for edits";

/**
 * Loads a policy or the settings as soon as the file changes: the log names mistakes early, the next command need not wait, and newly
 * named agents get their sockets. Only an optimisation: each decision compares the files anyway.
 */
export async function watchFiles(broker: Broker, log: Log): Promise<() => Promise<void>> {
  const { root, policies, config } = broker.home;
  // Watch the folder to see files created later; ignore all other entries.
  const ignored = (path: string): boolean => dirname(path) === root && path !== policies && path !== config;
  const watcher = watch([root, policies], { depth: 0, ignoreInitial: true, ignored });
  const load = (path: string): void => {
    if (path === config) broker.config();
    else if (path.endsWith(".yaml")) broker.policies.show(basename(path, ".yaml"));
  };
  watcher.on("add", load).on("change", load);
  let looking: NodeJS.Timeout | undefined;
  watcher.on("error", (error) => {
    if (looking === undefined) log.warn({ err: error }, CANNOT_WATCH);
    // No command comes by itself from an agent without a socket.
    looking ??= setInterval(() => broker.config(), LOOK_MS).unref();
  });
  await new Promise<void>((resolve) => watcher.once("ready", () => resolve()));
  // Catch changes between the broker's first read and the start of the watch.
  broker.config();
  return async () => {
    clearInterval(looking);
    await watcher.close();
  };
}
