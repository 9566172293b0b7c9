import { chmodSync, rmdirSync, unlinkSync } from "node:fs";
import type { Server as HttpServer } from "node:http";
import { connect, type Server } from "node:net";
import { Sandboxed } from "../client/client.ts";

/** Error: another process answers on the socket. */
export class SocketInUse extends Error {
  override readonly name = "SocketInUse";
}

/** Descriptors of listening sockets from the service manager, by path. A used one is taken out: a closed number comes back for another file. */
export type Handed = Map<string, number>;

export type OpenSocket<S extends Server = HttpServer> = {
  readonly server: S;
  readonly path: string;
  readonly isHanded: boolean;
};

/**
 * Listens on the path, on the service manager's socket if that one is still reached there: a broker without a manager may have replaced
 * the file. Throws {@link SocketInUse} if another process answers on the path.
 */
export async function openSocket<S extends Server>(
  server: S,
  path: string,
  handed: Handed,
): Promise<OpenSocket<S>> {
  const fd = handed.get(path);
  handed.delete(path);
  const isHanded = fd !== undefined && (await isAnswered(path));
  await (isHanded ? listenOnHanded(server, path, fd) : listenOn(server, path));
  return { server, path, isHanded };
}

/** Refuses new connections. Those of a handed socket wait in its queue for the next broker: the file is the service manager's. */
export function closeSocket({ server, path, isHanded }: OpenSocket<Server>): void {
  server.close();
  if (!isHanded) removeFile(path);
}

async function listenOnHanded(server: Server, path: string, fd: number): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ fd }, () => resolve());
  });
  chmodSync(path, 0o600);
}

/**
 * Listens on a Unix socket with owner-only access, replacing a dead broker's socket file. The umask is set around bind(2), so other
 * users can connect at no moment. Throws {@link SocketInUse} if another process answers on the path.
 */
async function listenOn(server: Server, path: string): Promise<void> {
  if (await isAnswered(path)) throw new SocketInUse(`Another broker answers on '${path}'`);
  removeFile(path);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    // Node binds before listen() returns, so the umask affects no other file of the process.
    const mask = process.umask(0o177);
    try {
      server.listen(path, () => resolve());
    } finally {
      process.umask(mask);
    }
  });
  chmodSync(path, 0o600);
}

/** Whether a process accepts connections on a Unix socket. Rejects with {@link Sandboxed} on EPERM, which hides the answer. */
export function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = connect(path);
    probe.once("connect", () => {
      probe.destroy();
      resolve(true);
    });
    probe.once("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPERM") reject(new Sandboxed(path, error));
      else resolve(false);
    });
  });
}

/** Removes a file; a missing file counts as removed. */
export function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

/** Removes an empty folder; keeps a non-empty folder. */
export function removeEmptyFolder(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    if (!["ENOENT", "ENOTEMPTY"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}
