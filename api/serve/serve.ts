/** The broker as a process: opens its sockets, says that it is there, and takes everything down again. */
import { readdirSync, renameSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Broker } from "../../broker/broker.ts";
import { agentSocketPath, type Home } from "../../broker/home.ts";
import type { BrokerFile } from "../../schemas/generated/types.ts";
import type { Caller } from "../http/caller.ts";
import type { Log } from "../http/context.ts";
import { createListener } from "../http/listener.ts";
import { listenOn, removeEmptyFolder, removeFile } from "./sockets.ts";

/** A running broker. `stop` ends its commands and worlds, closes the trace and removes its sockets. */
export type Running = { readonly stop: () => Promise<void> };

type Open = { readonly server: Server; readonly path: string };

export async function serve(broker: Broker, log: Log): Promise<Running> {
  const named = Object.keys(broker.config().agents ?? {});
  const reserved = (): ReadonlySet<string> => new Set(Object.keys(broker.config().agents ?? {}));
  const open: Open[] = [];
  const listen = async (path: string, caller: () => Caller): Promise<void> => {
    const server = createListener(broker, caller, log);
    await listenOn(server, path);
    open.push({ server, path });
  };
  try {
    removeStrangeSockets(broker.home, named);
    await listen(broker.home.controlSocket, () => ({ kind: "operator" }));
    for (const agent of named)
      await listen(agentSocketPath(broker.home, agent), () => ({ kind: "agent", agent }));
    await listen(broker.home.agentSocket, () => ({ kind: "label", reserved: reserved() }));
  } catch (error) {
    for (const { server, path } of open) close(server, path);
    throw error;
  }
  writeBrokerFile(broker, open);
  log.info({ pid: process.pid, sockets: open.map(({ path }) => path) }, "Broker is ready");
  return { stop: () => stop(broker, open, log) };
}

/** How long answers to ended commands may take to be written; they are ready within milliseconds. */
const LAST_ANSWERS_MS = 5000;

/**
 * Order: no new calls, then no worlds (which ends every command), then the last answers and lines of the commands that
 * were ended, then the record. A caller that does not read its answer is not waited for.
 */
async function stop(broker: Broker, open: readonly Open[], log: Log): Promise<void> {
  for (const { server, path } of open) close(server, path);
  const answered = broker.activity.close();
  await broker.backend.close();
  const patience = new AbortController();
  await Promise.race([
    answered,
    sleep(LAST_ANSWERS_MS, undefined, { signal: patience.signal }).catch(() => {}),
  ]);
  patience.abort();
  await sleep(0);
  for (const { server } of open) server.closeAllConnections();
  await broker.trace.end();
  removeFile(broker.home.brokerFile);
  removeEmptyFolder(broker.home.overlay);
  log.info({ pid: process.pid }, "Broker has stopped");
}

function close(server: Server, path: string): void {
  server.close();
  removeFile(path);
}

/** Sockets of agents that the settings no longer name. */
function removeStrangeSockets(home: Home, named: readonly string[]): void {
  const known = new Set(named.map((agent) => `${agent}.sock`));
  for (const name of readdirSync(home.agentSockets)) {
    if (!known.has(name)) removeFile(join(home.agentSockets, name));
  }
}

/** Written beside and renamed, so that nobody reads half of it. */
function writeBrokerFile(broker: Broker, open: readonly Open[]): void {
  const file: BrokerFile = {
    pid: process.pid,
    version: broker.version,
    sockets: {
      agent: broker.home.agentSocket,
      control: broker.home.controlSocket,
      agents: agentSockets(broker, open),
    },
    started_at: new Date().toISOString(),
  };
  const path = broker.home.brokerFile;
  writeFileSync(`${path}.new`, `${JSON.stringify(file)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

function agentSockets(broker: Broker, open: readonly Open[]): Record<string, string> {
  const own = open.filter(({ path }) => path.startsWith(`${broker.home.agentSockets}/`));
  return Object.fromEntries(
    own.map(({ path }) => [path.slice(broker.home.agentSockets.length + 1, -".sock".length), path]),
  );
}
