/**
 * The calls that name the address of a socket: `substrate-init` makes them itself, on a duplicate of the caller's socket
 * (`native/notify/connects/dials.c`), so that a Unix socket is reached by path only where it was bound in the same world.
 *
 * Deliberately left, each with its reason:
 * - send, and sendto without an address: they name nobody. The test is of the address's length, of which the kernel looks at
 *   32 bits as the filter does; the low half of a pointer can be 0.
 * - sendmsg, sendmmsg: their addresses lie in memory. Only a Unix datagram socket can name a path there (world/README.md).
 * - bind: it makes a new file, which is the world's.
 */
import type { FileCall } from "./file-calls.ts";

export const SOCKET_CALLS: readonly FileCall[] = [
  { call: "connect" },
  { call: "sendto", when: [{ argument: 5, notIn: [0] }] },
];
