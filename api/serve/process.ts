/** `substrate broker start --foreground`: runs a broker from the start to the stop signal. */
import { tryAhead } from "../../broker/journey/health.ts";
import { chmodSync } from "node:fs";
import { pino } from "pino";
import { askAhead } from "../../broker/journey/ask-ahead.ts";
import type { BackendChoice, Broker, WorldBackend } from "../../broker/broker.ts";
import { prepareHome } from "../../broker/settings/home.ts";
import type { Log } from "../http/context.ts";
import { dropLeftChanges, expireHeldChanges, recoverChanges } from "./held-changes.ts";
import { assembleBroker, type Parts } from "./assemble.ts";
import { type Claim, claimStart } from "./claim.ts";
import { serve } from "./serve.ts";
import type { ServiceManager } from "./service-manager.ts";
import { untilReplaced } from "./replaced.ts";
import { surviveStorageFaults } from "./storage-faults.ts";
import { watchFiles } from "./watch.ts";

/** What a backend may need of its broker. */
export type BackendGround = {
  readonly onChoice: (choice: BackendChoice) => void;
  /** The folders of `projects` in config.yaml; none before the broker is assembled. */
  readonly projects: () => readonly string[];
  /** Writes a line to the broker's log. */
  readonly note: (line: string) => void;
};

export type ProcessOptions = Omit<Parts, "log" | "backend"> & {
  readonly createBackend: (ground: BackendGround) => Promise<WorldBackend>;
  /** Whether the broker ends by itself when its installation is removed, and lets that of a new version take over. */
  readonly followsInstallation: boolean;
  /** Who started the broker and looks after it, if a service manager did. */
  readonly manager: ServiceManager | undefined;
};

/** Why the broker ended: `replaced` asks for the broker of the new version. */
export type Ending = "stopped" | "replaced";

/** Interval of the look for the home: a broker in a removed home answers nobody, and its worlds would stay. */
const HOME_CHECK_MS = 5000;

/** Of the process of a broker that cannot start, or whose home is removed; 125 stands for Substrate itself everywhere. */
const EXIT_FAILED = 125;

/** Time for whoever started the broker to print why it cannot run. */
const LAST_WORDS_MS = 1000;

/**
 * Runs until SIGTERM, SIGINT or SIGHUP; resolves after the shutdown. Throws if another broker runs in the home or a part cannot be
 * opened. Exits when the home is removed: closing the sockets would remove those of another broker in a new home with the same path.
 */
export async function runBroker(options: ProcessOptions): Promise<Ending> {
  prepareHome(options.home, options.uid);
  const lines = pino.destination({ dest: options.home.log, sync: true, mkdir: true });
  lines.on("error", () => {
    // Full disk: log lines are lost, ignoring: the trace itself refuses commands, and exiting would end all worlds.
  });
  const log = pino(lines);
  chmodSync(options.home.log, 0o600);
  const claim = claimStart(options.home.startLock);
  const asked = untilSignal();
  const unguard = surviveStorageFaults(log);
  let isReplaced = false;
  try {
    const brokers: Broker[] = [];
    const backend = await options.createBackend({
      onChoice: (choice) => sayChoice(choice, log),
      projects: () => brokers.flatMap((each) => each.listed.of(each.config()).roots),
      note: (line) => log.info(line),
    });
    const broker = await assembleBroker({ ...options, backend, log });
    brokers.push(broker);
    log.level = broker.config().log?.level ?? "info";
    askAhead(broker);
    await recoverChanges(broker, log);
    dropLeftChanges(broker, log);
    const running = await serve(broker, log, options.manager?.sockets ?? new Map());
    const signs = tellReady(options.manager);
    // Warms the cached probe of the first command.
    tryAhead(broker).catch((error: unknown) => {
      log.warn({ err: error }, "Cannot make worlds yet");
    });
    const expiry = expireHeldChanges(broker, log);
    const unwatch = await watchFiles(broker, log);
    whenHomeGoes(claim, async () => {
      process.stderr.write(
        `substrate: '${options.home.root}' was removed; the broker ends its worlds and itself\n`,
      );
      await running.abandon();
      process.exit(EXIT_FAILED);
    });
    const stopping = new AbortController();
    const replaced = options.followsInstallation
      ? untilReplaced(broker, options.installation, stopping.signal)
      : new Promise<never>(() => {});
    const cause = await Promise.race([asked, replaced]);
    stopping.abort();
    isReplaced = cause === "replaced";
    log.info({ cause }, "Broker stops");
    options.manager?.tell("STOPPING=1");
    clearInterval(expiry);
    await unwatch();
    await running.stop();
    clearInterval(signs);
  } catch (error) {
    log.error({ err: error }, "Broker cannot run");
    // What has opened keeps the process alive, and the signals that it listens to would end nothing any more.
    setTimeout(() => process.exit(EXIT_FAILED), LAST_WORDS_MS).unref();
    throw error;
  } finally {
    unguard();
    claim.release();
  }
  return isReplaced ? "replaced" : "stopped";
}

/** From here on the event loop must give a sign of life in time: a broker that hangs is ended and started again. */
export function tellReady(manager: ServiceManager | undefined): NodeJS.Timeout | undefined {
  manager?.tell("READY=1");
  return manager?.watchdogMs === undefined
    ? undefined
    : setInterval(() => manager.tell("WATCHDOG=1"), manager.watchdogMs);
}

/** A claim that cannot be read now (EMFILE) is no sign that the home is gone. */
function isStillHeld(claim: Claim): boolean {
  try {
    return claim.isHeld();
  } catch {
    return true;
  }
}

function whenHomeGoes(claim: Claim, act: () => Promise<void>): void {
  const timer = setInterval(() => {
    if (isStillHeld(claim)) return;
    clearInterval(timer);
    void act();
  }, HOME_CHECK_MS).unref();
}

function sayChoice({ backend, refused }: BackendChoice, log: Log): void {
  if (refused.length === 0) log.info({ backend }, "Backend chosen");
  else log.warn({ backend, refused }, "Backend chosen; this host cannot run the backends before it");
}

/**
 * Waits for a stop signal. Called before any part opens: an early signal stops the broker right after the start. The listeners stay
 * registered: execa, with a listener of its own while a host tool runs, kills the process if no other listener exists.
 */
export function untilSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const name of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(name, () => resolve(name));
  });
}
