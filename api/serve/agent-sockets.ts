/** The agents' own sockets: open for each agent named in the settings. */
import { readdirSync } from "node:fs";
import type { Server } from "node:http";
import { join } from "node:path";
import { agentSocketPath, type Home } from "../../broker/settings/home.ts";
import type { Caller } from "../http/caller.ts";
import type { Log } from "../http/context.ts";
import { closeSocket, type Handed, openSocket, type OpenSocket, removeFile } from "./sockets.ts";

export type CreateServer = (caller: () => Caller) => Server;

export class AgentSockets {
  readonly #home: Home;
  readonly #create: CreateServer;
  readonly #log: Log;
  readonly #handed: Handed;
  readonly #open = new Map<string, OpenSocket>();
  #following: Promise<void> = Promise.resolve();
  #closed = false;

  /** Removes socket files of unnamed agents, left by an earlier broker. */
  constructor(home: Home, named: readonly string[], create: CreateServer, log: Log, handed: Handed) {
    this.#handed = handed;
    this.#home = home;
    this.#create = create;
    this.#log = log;
    const known = new Set(named.map((agent) => `${agent}.sock`));
    for (const name of readdirSync(home.agentSockets)) {
      if (!known.has(name)) removeFile(join(home.agentSockets, name));
    }
  }

  /** Socket path by agent. */
  get paths(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#open].map(([agent, { path }]) => [agent, path]));
  }

  get servers(): readonly Server[] {
    return [...this.#open.values()].map(({ server }) => server);
  }

  /** Opens the named agents' sockets at the start. Throws if a socket cannot be opened: the broker then does not start. */
  async open(named: readonly string[]): Promise<void> {
    for (const agent of named) await this.#listen(agent);
  }

  /** Opens missing sockets and closes those of unnamed agents, in the order of calls; false after {@link close}. */
  follow(named: readonly string[]): Promise<boolean> {
    const change = async (): Promise<boolean> => {
      if (!this.#closed) await this.#change(new Set(named));
      return !this.#closed;
    };
    const followed = this.#following.then(change);
    this.#following = followed.then(() => undefined);
    return followed;
  }

  /** Refuses new connections; open connections go on. */
  close(): void {
    this.#closed = true;
    for (const each of this.#open.values()) closeSocket(each);
  }

  async #change(named: ReadonlySet<string>): Promise<void> {
    for (const agent of this.#open.keys()) if (!named.has(agent)) this.#remove(agent);
    for (const agent of named) {
      if (this.#open.has(agent)) continue;
      await this.#listen(agent).catch((error: unknown) =>
        this.#log.error({ err: error, agent }, "Cannot open an agent's own socket"),
      );
    }
  }

  async #listen(agent: string): Promise<void> {
    const path = agentSocketPath(this.#home, agent);
    const server = this.#create(() => ({ kind: "agent", agent }));
    this.#open.set(agent, await openSocket(server, path, this.#handed));
    if (this.#closed) this.#remove(agent);
  }

  /** Closes an agent's socket and connections: callers lose the identity, so their calls and commands end. */
  #remove(agent: string): void {
    const known = this.#open.get(agent);
    if (known === undefined) return;
    this.#open.delete(agent);
    removeFile(known.path);
    known.server.close();
    known.server.closeAllConnections();
    this.#log.info({ agent }, "Closed the socket of an agent that config.yaml no longer names");
  }
}
