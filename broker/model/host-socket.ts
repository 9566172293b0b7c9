/** A Unix socket of the host, looked up and reached by identity. */
import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  realpathSync,
} from "node:fs";
import { connect, type Socket } from "node:net";

export type HostSocket = {
  /** Real path. */
  readonly source: string;
  /** A restarted server has a new socket under the same name, with another identity. */
  readonly identity: string;
};

/** Returns the socket at the path or at the end of its links; undefined for anything else. */
export function socketAt(path: string): HostSocket | undefined {
  try {
    const source = realpathSync(path);
    const stat = lstatSync(source, { bigint: true });
    return stat.isSocket() ? { source, identity: identityOf(stat) } : undefined;
  } catch {
    // Missing or unreadable, ignoring: the socket is shared once a server listens.
    return undefined;
  }
}

/** `O_PATH`, missing in Node: a socket cannot be opened otherwise (asm-generic/fcntl.h). */
const O_PATH = 0o10000000;

/** Connects to exactly the socket that was looked up; undefined if another file has its name now, such as a link to another server. */
export function dial({ source, identity }: HostSocket): Socket | undefined {
  let file: number | undefined;
  try {
    file = openSync(source, O_PATH | constants.O_NOFOLLOW);
    if (identityOf(fstatSync(file, { bigint: true })) !== identity) return undefined;
    // libuv calls connect(2) before this returns, so the file is not needed later.
    return connect(`/proc/self/fd/${file}`);
  } catch {
    // Gone, ignoring: the caller ends its client's connection, as a server that is gone would.
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function identityOf({ dev, ino, ctimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${ctimeNs}`;
}
