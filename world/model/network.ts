/** A world's network as seen by the broker; part of `world/backend.ts`. */
import type { RemoteInfo } from "node:dgram";
import type { EventEmitter } from "node:events";
import type { Duplex } from "node:stream";

/** TCP ports: a list, or all. */
export type Ports = readonly number[] | "any";

/**
 * Which connections of a world reach `WorldNetwork.onConnection`; all others are refused inside the world. The rules only choose
 * destinations: the listener decides whether to allow each connection.
 */
export type NetworkRules = {
  /** For host names, represented by the addresses of 198.18.0.0/15. */
  readonly ports: Ports;
  /** For addresses. IPv4 only: worlds have no other network. */
  readonly ranges: readonly { readonly cidr: string; readonly ports: Ports }[];
};

/** A connection made by a program in the world. */
export type Captured = {
  /** The world's end of the connection, half-open allowed; the listener owns the socket. */
  readonly socket: WorldSocket;
  /** The dialled IPv4 address and port. */
  readonly address: string;
  readonly port: number;
  /** Inode of the program's socket, for `World.ownerOf`; 0 if the socket was already gone. */
  readonly inode: number;
};

/** A dialled address without a name, and a port. */
export type Dialled = { readonly address: string; readonly port: number };

/** The socket that asked the world's name server: its own port. */
export type Asker = { readonly transport: "udp" | "tcp"; readonly port: number };

/** What is used of `node:net`'s Socket: a world on another machine has another kind. */
export interface WorldSocket extends Duplex {
  allowHalfOpen: boolean;
  /** Absent on another machine's sockets. */
  readonly remotePort?: number | undefined;
  setNoDelay(on?: boolean): unknown;
  setKeepAlive(on?: boolean, delayMs?: number): unknown;
  setTimeout(ms: number, listener: () => void): unknown;
  resetAndDestroy(): unknown;
}

/** What is used of `node:dgram`'s Socket. */
export interface DatagramPort extends EventEmitter {
  on(event: "error", listener: (error: Error) => void): this;
  on(event: "message", listener: (message: Buffer, from: Pick<RemoteInfo, "port" | "address">) => void): this;
  send(bytes: Uint8Array, port: number, address: string, sent: () => void): void;
  getSendQueueCount(): number;
  close(): unknown;
}

/** What is used of `node:net`'s Server. */
export interface StreamListener extends EventEmitter {
  maxConnections: number;
  on(event: "error", listener: (error: Error) => void): this;
  on(event: "connection", listener: (socket: WorldSocket) => void): this;
  close(): unknown;
}

export type DnsSockets = { readonly udp: DatagramPort; readonly tcp: StreamListener };

/** The network of one world; ends with the world. */
export interface WorldNetwork {
  /**
   * Returns sockets bound to 127.0.0.53:53 in the world, the address in its resolv.conf. Call once; the caller closes them.
   * Throws {@link WorldUnavailable} when the network is gone.
   */
  takeDns(): DnsSockets;
  /** Sets the listener; earlier connections wait for the call. */
  onConnection(listener: (captured: Captured) => void): void;
  /** Replaces the rules atomically; open connections stay. Throws {@link WorldUnavailable} and leaves the old rules in force. */
  allow(rules: NetworkRules): Promise<void>;
  /** Resolves once the listener has every connection made before the call, or the network is gone. Never rejects. */
  flush(): Promise<void>;
  /** Connects to a port of the world's localhost. Rejects with a sentence for people. */
  connect(port: number): Promise<WorldSocket>;
}
