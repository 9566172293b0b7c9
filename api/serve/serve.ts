/** The running broker: opens the sockets, writes broker.json, and shuts everything down. */
import { renameSync, writeFileSync } from "node:fs";
import type { Server } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { Broker } from "../../broker/broker.ts";
import type { BrokerFile } from "../../schemas/generated/types.ts";
import type { Caller } from "../http/caller.ts";
import type { Log } from "../http/context.ts";
import { ConnectionShares } from "../http/bounds.ts";
import { createListener, refuseConnection } from "../http/listener.ts";
import { AgentSockets } from "./agent-sockets.ts";
import {
  closeSocket,
  type Handed,
  openSocket,
  type OpenSocket,
  removeEmptyFolder,
  removeFile,
} from "./sockets.ts";

export type Running = {
  /** Ends all commands and worlds, closes the trace and removes the sockets. */
  readonly stop: () => Promise<void>;
  /** Ends all commands and worlds, and touches no file of the home. */
  readonly abandon: () => Promise<void>;
};

export async function serve(broker: Broker, log: Log, handed: Handed): Promise<Running> {
  const named = (): readonly string[] => Object.keys(broker.config().agents ?? {});
  const open: OpenSocket[] = [];
  const create = (caller: () => Caller): Server => createListener(broker, caller, log);
  const sayExcess = excessLog(log);
  const shares = new ConnectionShares((socket) => {
    refuseConnection(socket);
    sayExcess();
  });
  const createForAgents = (caller: () => Caller): Server => shares.bound(create(caller));
  const agents = new AgentSockets(broker.home, named(), createForAgents, log, handed);
  const listen = async (path: string, server: Server): Promise<void> => {
    open.push(await openSocket(server, path, handed));
  };
  // First: a command that comes before it would get a world without it.
  const closeRelay = await openRelay(broker, handed);
  try {
    await listen(
      broker.home.controlSocket,
      create(() => ({ kind: "operator" })),
    );
    await agents.open(named());
    const labels = createForAgents(() => ({ kind: "label", reserved: agentsOf(broker) }));
    await listen(broker.home.agentSocket, labels);
  } catch (error) {
    for (const each of open) closeSocket(each);
    agents.close();
    closeRelay();
    throw error;
  }
  const since = new Date().toISOString();
  writeBrokerFile(broker, agents, since);
  broker.onSettings(() => {
    agents
      .follow(named())
      .then((isOpen) => isOpen && writeBrokerFile(broker, agents, since))
      .catch((error: unknown) =>
        log.error({ err: error }, "run/broker.json does not name the agents' sockets"),
      );
  });
  const sockets = [...open.map(({ path }) => path), ...Object.values(agents.paths)];
  log.info({ sockets, handed: open.filter(({ isHanded }) => isHanded).length }, "Broker is ready");
  return { stop: () => stop(broker, open, agents, closeRelay, log), abandon: () => broker.backend.close() };
}

/** Opens the socket in front of the person's ssh-agent, where there is one. Returns a function that closes it. */
async function openRelay({ sshAgentRelay: relay }: Broker, handed: Handed): Promise<() => void> {
  if (relay === undefined) return () => {};
  const opened = await openSocket(relay.server, relay.path, handed);
  return () => {
    closeSocket(opened);
    relay.close();
  };
}

const SAY_AGAIN_MS = 60_000;

/** Logs an excess at most once a minute. */
function excessLog(log: Log): () => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now - saidAt < SAY_AGAIN_MS) return;
    saidAt = now;
    log.warn({}, "Clients of the agents' sockets hold too many connections; further ones are closed");
  };
}

/** Agents with their own socket, looked up in the current settings: a request's body may come long after the head. */
function agentsOf(broker: Broker): { readonly has: (name: string) => boolean } {
  return { has: (name) => Object.hasOwn(broker.config().agents ?? {}, name) };
}

/** Time limit for writing the answers of ended commands, which are ready within milliseconds. */
const LAST_ANSWERS_MS = 5000;

/**
 * Order: stop new calls, questions and published ports; end the worlds, which ends every command; write the last answers and trace
 * lines of ended commands; close the trace. Does not wait for callers that leave their answer unread.
 */
async function stop(
  broker: Broker,
  open: readonly OpenSocket[],
  agents: AgentSockets,
  closeRelay: () => void,
  log: Log,
): Promise<void> {
  for (const each of open) closeSocket(each);
  agents.close();
  const answered = broker.activity.close();
  broker.approvals.close();
  broker.publisher.end();
  await broker.backend.close();
  broker.gateway.close();
  closeRelay();
  const patience = new AbortController();
  await Promise.race([
    answered,
    sleep(LAST_ANSWERS_MS, undefined, { signal: patience.signal }).catch(() => {}),
  ]);
  patience.abort();
  await sleep(0);
  for (const server of [...open.map((one) => one.server), ...agents.servers]) server.closeAllConnections();
  broker.limitSpans.end();
  await broker.trace.end();
  removeFile(broker.home.brokerFile);
  removeEmptyFolder(broker.home.overlay);
  log.info({}, "Broker has stopped");
}

/** Writes broker.json atomically by a rename. */
function writeBrokerFile(broker: Broker, agents: AgentSockets, since: string): void {
  const file: BrokerFile = {
    pid: process.pid,
    version: broker.version,
    ...(broker.around.checkout === undefined ? {} : { installation: broker.around.checkout }),
    sockets: {
      agent: broker.home.agentSocket,
      control: broker.home.controlSocket,
      agents: { ...agents.paths },
    },
    started_at: since,
  };
  const path = broker.home.brokerFile;
  writeFileSync(`${path}.new`, `${JSON.stringify(file)}\n`, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
