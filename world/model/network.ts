/** What a world's network is to whoever decides; part of `world/backend.ts`. */
import type { Socket as UdpSocket } from "node:dgram";
import type { Server, Socket } from "node:net";

/** TCP ports: some of them, or each. */
export type Ports = readonly number[] | "any";

/**
 * What of a world's connections is brought to `WorldNetwork.onConnection`; all others are refused in the world. It says where
 * to, not whether: whoever takes a connection decides.
 */
export type NetworkRules = {
  /** Of names, which are the addresses of 198.18.0.0/15. */
  readonly ports: Ports;
  /** Of addresses. IPv4 only: there is no other network inside. */
  readonly ranges: readonly { readonly cidr: string; readonly ports: Ports }[];
};

/** A connection that a program in the world has made. */
export type Captured = {
  /** From the world, half-open allowed; whoever is told owns it. */
  readonly socket: Socket;
  /** What was dialled: an IPv4 address and port. */
  readonly address: string;
  readonly port: number;
  /** Of the program's socket, for `World.ownerOf`; 0 when it was gone. */
  readonly inode: number;
};

export type DnsSockets = { readonly udp: UdpSocket; readonly tcp: Server };

/** The network of one world. It ends with the world. */
export interface WorldNetwork {
  /**
   * Sockets bound to 127.0.0.53:53 in the world, where its resolv.conf points. Once: they are the caller's to close. Throws
   * {@link WorldUnavailable} when the network is gone.
   */
  takeDns(): DnsSockets;
  /** Who is told of connections; until then they wait. */
  onConnection(listener: (captured: Captured) => void): void;
  /** Replaces the rules in one step; connections that are open stay. Throws {@link WorldUnavailable}, and the old ones hold. */
  allow(rules: NetworkRules): Promise<void>;
  /** Connects to a port of the world's localhost. Rejects with a sentence for people. */
  connect(port: number): Promise<Socket>;
}
