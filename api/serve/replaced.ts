/** What becomes of a broker whose installation a package manager removes, or replaces by another version. */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Broker } from "../../broker/broker.ts";
import type { Parts } from "./assemble.ts";
import type { Installation } from "./installation.ts";

const LOOK_MS = 5_000;

/**
 * Resolves when the installation is gone (`removed`), or when another version is in its place and nothing runs (`replaced`): the broker
 * then lacks the files of its own version, and `substrate-init` is that of the other. Never
 * settles after an abort.
 */
export async function untilReplaced(
  broker: Broker,
  { root, version }: Installation,
  signal: AbortSignal,
): Promise<"removed" | "replaced"> {
  let missing = 0;
  for (;;) {
    await sleep(LOOK_MS, undefined, { ref: false, signal }).catch(() => {});
    if (signal.aborted) return await new Promise<never>(() => {});
    const found = versionIn(root);
    // npm moves the folder away for a moment.
    missing = found === undefined ? missing + 1 : 0;
    if (missing === 2) return "removed";
    if (found !== undefined && found !== version && (await isIdle(broker, signal))) return "replaced";
  }
}

/** Starts the broker of the new version. It outlives this process. */
export function startSuccessor({
  installation,
  host,
  cwd,
}: Pick<Parts, "installation" | "host" | "cwd">): void {
  const words = [installation.launcher, "broker", "start", "--foreground", "--detached"];
  const child = spawn(process.execPath, words, { detached: true, stdio: "ignore", cwd, env: { ...host } });
  // Nobody is left to hear of it; agents' hooks and the CLI say that no broker answers.
  child.once("error", () => {});
  child.unref();
}

function versionIn(root: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string }).version;
  } catch {
    return undefined;
  }
}

/** Whether no call waits, no command runs and no process was kept. */
async function isIdle(broker: Broker, signal: AbortSignal): Promise<boolean> {
  if (broker.activity.running > 0 || broker.worlds.running() > 0) return false;
  const worlds = await broker.worlds.all();
  const processes = await Promise.all(worlds.map(({ world }) => world.processes(signal)));
  return processes.every((list) => list.length === 0);
}
