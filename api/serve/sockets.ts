import { chmodSync, rmdirSync, unlinkSync } from "node:fs";
import type { Server } from "node:http";
import { connect } from "node:net";
import { Sandboxed } from "../client/client.ts";

/** Another process answers on a socket that this one was to open. */
export class SocketInUse extends Error {
  override readonly name = "SocketInUse";
}

/**
 * Listens on a Unix socket that only its owner may use. A socket file that a dead broker left is replaced.
 * The mask is set around bind(2), so that there is no moment at which others may connect.
 * Throws {@link SocketInUse} when somebody answers there.
 */
export async function listenOn(server: Server, path: string): Promise<void> {
  if (await isAnswered(path)) throw new SocketInUse(`Another broker answers on '${path}'`);
  removeFile(path);
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    // Node binds before listen() returns: no other file of this process meets the mask.
    const mask = process.umask(0o177);
    try {
      server.listen(path, () => resolve());
    } finally {
      process.umask(mask);
    }
  });
  chmodSync(path, 0o600);
}

/** Whether somebody accepts connections on a Unix socket. Rejects with {@link Sandboxed} where nobody here can know. */
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

/** Removes a file; one that is gone already is what was wanted. */
export function removeFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

/** Removes a folder that holds nothing; one that does stays. */
export function removeEmptyFolder(path: string): void {
  try {
    rmdirSync(path);
  } catch (error) {
    if (!["ENOENT", "ENOTEMPTY"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
  }
}
