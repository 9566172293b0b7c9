/** The network of a world behind a world agent: the agent accepts, the broker decides and dials. */
import { EventEmitter } from "node:events";
import {
  type Captured,
  type DatagramPort,
  type DnsSockets,
  type NetworkRules,
  type StreamListener,
  type WorldNetwork,
  type WorldSocket,
  WorldUnavailable,
} from "../world/backend.ts";
import type { StreamSocket } from "../world/wire/stream-socket.ts";
import type { ToAgent } from "./agent-connection.ts";

type Sender = { readonly port: number; readonly address: string };

export class RemoteNetwork implements WorldNetwork {
  readonly #world: string;
  readonly #peer: ToAgent;
  readonly #stream: (token: string) => StreamSocket;
  readonly #open = new Set<WorldSocket>();
  #dns: { readonly udp: RemoteDatagrams; readonly tcp: RemoteListener } | undefined;
  #take: ((captured: Captured) => void) | undefined;
  #loss: string | undefined;

  constructor(world: string, peer: ToAgent, stream: (token: string) => StreamSocket) {
    this.#world = world;
    this.#peer = peer;
    this.#stream = stream;
  }

  takeDns(): DnsSockets {
    if (this.#loss !== undefined)
      throw new WorldUnavailable(`The world's network is gone: ${this.#loss}`, "Try again");
    if (this.#dns !== undefined) throw new Error("The world's name server is taken already");
    const world = this.#world;
    this.#peer.tell("takeDns", { world });
    const close = (): void => this.#peer.tell("closeDns", { world });
    const send = (bytes: Uint8Array, port: number, address: string): void =>
      this.#peer.tell("datagram", { world, bytes, port, address });
    this.#dns = { udp: new RemoteDatagrams(send, close), tcp: new RemoteListener(close) };
    return this.#dns;
  }

  onConnection(listener: (captured: Captured) => void): void {
    this.#take = listener;
    this.#peer.tell("listen", { world: this.#world });
  }

  async allow(rules: NetworkRules): Promise<void> {
    await this.#peer.call("allow", { world: this.#world, rules });
  }

  async flush(): Promise<void> {
    // The connection to the agent is gone, ignoring: so is the network.
    await this.#peer.call("flush", { world: this.#world }).catch(() => {});
  }

  async connect(port: number): Promise<WorldSocket> {
    return this.#kept(this.#stream(await this.#peer.call("dial", { world: this.#world, port })));
  }

  take(captured: Captured): void {
    this.#kept(captured.socket);
    this.#take?.(captured);
  }

  takeDatagram(bytes: Buffer, from: Sender): void {
    this.#dns?.udp.emit("message", bytes, from);
  }

  takeDnsStream(socket: WorldSocket): void {
    this.#kept(socket);
    this.#dns?.tcp.emit("connection", socket);
  }

  /** Resets what is open: a stream of its own may not notice that the agent is gone. */
  close(cause: string): void {
    this.#loss = cause;
    for (const socket of this.#open) socket.resetAndDestroy();
    this.#open.clear();
  }

  #kept<Kept extends WorldSocket>(socket: Kept): Kept {
    this.#open.add(socket);
    socket.once("close", () => this.#open.delete(socket));
    // Before its owner listens, ignoring: an unhandled error would end the broker, and the owner sees the close.
    socket.on("error", () => {});
    return socket;
  }
}

class RemoteDatagrams extends EventEmitter implements DatagramPort {
  readonly #send: (bytes: Uint8Array, port: number, address: string) => void;
  readonly #close: () => void;

  constructor(send: (bytes: Uint8Array, port: number, address: string) => void, close: () => void) {
    super();
    this.#send = send;
    this.#close = close;
  }

  send(bytes: Uint8Array, port: number, address: string, sent: () => void): void {
    this.#send(bytes, port, address);
    sent();
  }

  /** The connection's own bound holds. */
  getSendQueueCount(): number {
    return 0;
  }

  close(): void {
    this.#close();
  }
}

class RemoteListener extends EventEmitter implements StreamListener {
  /** The agent has a bound of its own. */
  maxConnections = 0;
  readonly #close: () => void;

  constructor(close: () => void) {
    super();
    this.#close = close;
  }

  close(): void {
    this.#close();
  }
}
