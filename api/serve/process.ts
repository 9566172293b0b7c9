/** `substrate broker start --foreground`: one broker from its start to its signal. */
import { chmodSync } from "node:fs";
import { pino } from "pino";
import { prepareHome } from "../../broker/home.ts";
import { expireLayers } from "./held-changes.ts";
import { assembleBroker, type Parts } from "./assemble.ts";
import { claimStart } from "./claim.ts";
import { serve } from "./serve.ts";
import { watchPolicies } from "./watch.ts";

export type ProcessOptions = Omit<Parts, "log">;

/**
 * Runs until SIGTERM, SIGINT or SIGHUP, and settles when everything is taken down. Throws when another broker
 * runs in this home or a part cannot be opened.
 */
export async function runBroker(options: ProcessOptions): Promise<void> {
  prepareHome(options.home);
  const log = pino(pino.destination({ dest: options.home.log, sync: true, mkdir: true }));
  chmodSync(options.home.log, 0o600);
  const claim = claimStart(options.home.startLock);
  try {
    const broker = await assembleBroker({ ...options, log });
    log.level = broker.config().log?.level ?? "info";
    const running = await serve(broker, log);
    const expiry = await expireLayers(broker, log);
    const unwatch = await watchPolicies(broker, log);
    const signal = await untilSignal();
    log.info({ signal }, "Broker is asked to stop");
    clearInterval(expiry);
    await unwatch();
    await running.stop();
  } catch (error) {
    log.error(
      { error: error instanceof Error ? { message: error.message, stack: error.stack } : String(error) },
      "Broker cannot run",
    );
    throw error;
  } finally {
    claim.release();
  }
}

function untilSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.once(name, () => resolve(name));
  });
}
