/** The network of one world for a broker elsewhere: its sockets stay here, their bytes go there. */
import type { DnsSockets, NetworkRules, WorldNetwork } from "../model/network.ts";
import type { Datagram } from "../wire/protocol.ts";
import type { ToBroker } from "./session.ts";
import type { Streams } from "./streams.ts";

/** Connections to a world's name server; a program needs one. */
const MOST_DNS_STREAMS = 64;

export class AgentNetwork {
  readonly #peer: ToBroker;
  readonly #world: string;
  readonly #network: WorldNetwork;
  readonly #streams: Streams;
  #dns: DnsSockets | undefined;

  constructor(peer: ToBroker, world: string, network: WorldNetwork, streams: Streams) {
    this.#peer = peer;
    this.#world = world;
    this.#network = network;
    this.#streams = streams;
  }

  allow(rules: NetworkRules): Promise<void> {
    return this.#network.allow(rules);
  }

  flush(): Promise<void> {
    return this.#network.flush();
  }

  listen(): void {
    const world = this.#world;
    this.#network.onConnection(({ socket, address, port, inode }) => {
      const stream = this.#streams.add(socket);
      if (stream !== undefined) this.#peer.tell("captured", { world, stream, address, port, inode });
    });
  }

  async dial(port: number): Promise<string> {
    const stream = this.#streams.add(await this.#network.connect(port));
    if (stream === undefined) throw new Error("Too many connections wait for the broker");
    return stream;
  }

  takeDns(): void {
    const dns = this.#network.takeDns();
    const world = this.#world;
    this.#dns = dns;
    // Of a socket that fails, ignoring: the world's programs get no answer, and ask again.
    for (const socket of [dns.udp, dns.tcp]) socket.on("error", () => {});
    dns.udp.on("message", (bytes, { port, address }) => {
      // UDP may lose a datagram; a command that sends many must not fill the connection.
      if (!this.#peer.isSlow) this.#peer.tell("datagram", { world, bytes, port, address });
    });
    dns.tcp.maxConnections = MOST_DNS_STREAMS;
    dns.tcp.on("connection", (socket) => {
      const stream = this.#streams.add(socket);
      if (stream !== undefined) this.#peer.tell("dnsStream", { world, stream });
    });
  }

  reply({ bytes, port, address }: Datagram): void {
    this.#dns?.udp.send(bytes, port, address, () => {});
  }

  closeDns(): void {
    this.#dns?.udp.close();
    this.#dns?.tcp.close();
    this.#dns = undefined;
  }
}
