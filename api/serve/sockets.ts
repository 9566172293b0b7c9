import { chmodSync, rmdirSync, unlinkSync } from "node:fs";
import type { Server } from "node:http";
import { connect } from "node:net";
import { Sandboxed } from "../client/client.ts";

/** Error: another process answers on the socket. */
export class SocketInUse extends Error {
  override readonly name = "SocketInUse";
}

/**
 * Listens on a Unix socket with owner-only access, replacing a dead broker's socket file. The umask is set around bind(2), so other
 * users can connect at no moment. Throws {@link SocketInUse} if another process answers on the path.
 */
export async function listenOn(server: Server, path: string): Promise<void> {
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
