import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { HostCheck, HostFinding } from "../../broker/broker.ts";
import type { Home } from "../../broker/settings/home.ts";
import { claimedBy } from "../serve/claim.ts";
import { isAnswered, removeFile } from "../serve/sockets.ts";

/** Checks for files of dead brokers: unanswered sockets, `broker.json` and claims. The next start replaces such files too. */
export function leftFilesCheck(home: Home, mend: boolean): HostCheck {
  return {
    name: "left-files",
    what: "sockets and files of dead brokers",
    needed: false,
    run: () => run(home, mend),
  };
}

async function run(home: Home, mend: boolean): Promise<HostFinding> {
  const left = await leftFiles(home);
  const names = left.map((path) => `'${path}'`).join(", ");
  if (left.length === 0) return { verdict: "ok", seen: "none", mend: [] };
  if (!mend) return { verdict: "weaker", seen: names, mend: ["substrate world doctor --mend"] };
  for (const path of left) removeFile(path);
  return { verdict: "ok", seen: `removed ${names}`, mend: [] };
}

/** Lists the left files; empty while a broker runs or starts in the home, because all files then belong to the live broker. */
async function leftFiles(home: Home): Promise<readonly string[]> {
  if (claimedBy(home.startLock) !== undefined) return [];
  const agents = existsSync(home.agentSockets)
    ? readdirSync(home.agentSockets).map((name) => join(home.agentSockets, name))
    : [];
  const sockets = [home.agentSocket, home.controlSocket, home.sshAgentSocket, ...agents].filter((path) =>
    existsSync(path),
  );
  const answered = await Promise.all(sockets.map((path) => isAnswered(path)));
  if (answered.includes(true)) return [];
  return [...sockets, ...[home.brokerFile].filter((path) => existsSync(path)), ...deadClaims(home.startLock)];
}

/** Lists claims of dead processes: `start.lock`, and drafts of killed starts (`start.lock.PID`). */
function deadClaims(lock: string): readonly string[] {
  const folder = dirname(lock);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter((name) => name === basename(lock) || name.startsWith(`${basename(lock)}.`))
    .map((name) => join(folder, name))
    .filter((path) => isDead(path));
}

function isDead(path: string): boolean {
  return claimedBy(path) === undefined && /^\d+ \d+$/.test(readText(path));
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    // Removed meanwhile.
    return "";
  }
}
