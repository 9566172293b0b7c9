/**
 * The calls with a socket address as argument. `substrate-init` makes these calls itself, on a duplicate of the caller's socket
 * (`native/notify/connects/dials.c`), so that a path reaches only Unix sockets bound in the same world.
 *
 * Deliberately left, each with its reason:
 * - send, and sendto without an address: have no destination. The filter tests the address's length, of which kernel and filter
 * read the same 32 bits; the low half of a pointer can be 0.
 * - sendmsg, sendmmsg: the addresses lie in memory. Only a Unix datagram socket can name a path there (world/README.md).
 * - bind: makes a new file, owned by the world.
 */
import type { FileCall } from "./file-calls.ts";

export const SOCKET_CALLS: readonly FileCall[] = [
  { call: "connect" },
  { call: "sendto", when: [{ argument: 5, notIn: [0] }] },
];

/** Also made by `substrate-init` in the host's network namespace (`native/notify/connects/listens.c`). */
export const LISTEN_CALLS: readonly FileCall[] = [{ call: "listen" }];
