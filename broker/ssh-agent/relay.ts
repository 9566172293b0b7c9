/** The broker's own socket in front of the person's ssh-agent: worlds use the agent's keys there, and cannot change the agent. */
import { createServer, type Server, type Socket } from "node:net";
import { pipeline } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { dial, type HostSocket, socketAt } from "../model/host-socket.ts";
import { FAILURE, isForwarded, messagesOf } from "./messages.ts";

/** Concurrent connections of all worlds; any further connection is closed. */
export const MAX_CONNECTIONS = 256;

export class SshAgentRelay {
  readonly path: string;
  /** Opened and closed by the owner of the broker's sockets. */
  readonly server: Server;
  readonly #clients = new Set<Socket>();
  #agent: HostSocket | undefined;

  constructor(path: string) {
    this.path = path;
    this.server = createServer({ allowHalfOpen: true }, (client) => this.#accept(client));
    this.server.maxConnections = MAX_CONNECTIONS;
    // Accepting a connection failed, ignoring: its client sees the failure, and the server goes on.
    this.server.on("error", () => undefined);
  }

  /** Leads further connections to the agent. Returns the relay's own socket; undefined while it is not open. */
  leadTo(agent: HostSocket): HostSocket | undefined {
    this.#agent = agent;
    return socketAt(this.path);
  }

  /** Ends all connections. */
  close(): void {
    for (const client of this.#clients) client.destroy();
  }

  #accept(client: Socket): void {
    this.#clients.add(client);
    client.once("close", () => this.#clients.delete(client));
    const agent = this.#agent === undefined ? undefined : dial(this.#agent);
    if (agent === undefined) client.destroy();
    else join(client, agent);
  }
}

/**
 * Answers a client's requests in their order, one at a time, with a connection to the agent of its own: session-bind holds for a
 * connection. A client that does not read its answers is not read either. Both connections end together.
 */
function join(client: Socket, agent: Socket): void {
  // Errors of both, ignoring: a broken connection closes, and takes the other with it.
  for (const socket of [client, agent]) socket.on("error", () => undefined);
  client.once("close", () => agent.destroy());
  agent.once("close", () => client.destroy());
  pipeline(
    client,
    (requests: AsyncIterable<Buffer>) => answersTo(requests, agent),
    client,
    // The end of the client or of its requests, ignoring: the client closes, and then the agent's connection.
    () => undefined,
  );
}

async function* answersTo(requests: AsyncIterable<Buffer>, agent: Socket): AsyncGenerator<Buffer, void> {
  const replies = messagesOf(agent);
  let reply = nextOf(replies, agent);
  for await (const request of messagesOf(requests)) {
    if (!isForwarded(request)) {
      yield FAILURE;
      // A flood of such requests leaves turns of the event loop to everybody else.
      await setImmediate();
      continue;
    }
    agent.write(request);
    const answer = await reply;
    if (answer === undefined) return;
    yield answer;
    reply = nextOf(replies, agent);
  }
}

/** Reads the agent also while nothing is asked, so that its end is seen at once; undefined after its end or a broken reply. */
async function nextOf(replies: AsyncGenerator<Buffer, void>, agent: Socket): Promise<Buffer | undefined> {
  try {
    const { value } = await replies.next();
    if (value !== undefined) return value;
  } catch {
    // Broken off or no message, ignoring: the connection has ended for the client too.
  }
  agent.destroy();
  return undefined;
}
