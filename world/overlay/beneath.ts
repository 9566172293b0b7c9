/**
 * Reads files below a folder without following links, even if folders are swapped for links meanwhile: each folder is opened
 * below the previous one (/proc/self/fd, since Node has no openat). Paths are bytes.
 */
import { constants, type Stats } from "node:fs";
import { type FileHandle, lstat, open, readdir, readlink } from "node:fs/promises";
import { posix } from "node:path";
import { rawPath } from "./names.ts";

/** From `include/uapi/asm-generic/fcntl.h`; missing in Node. Opens folders without read permission too. */
const O_PATH = 0o10000000;
const WALK = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Does not block on a pipe in the file's place. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export class Beneath {
  readonly #root: FileHandle;
  /** Caches the last folder: most paths that follow lie there too. */
  #last: { readonly folder: string; readonly handle: FileHandle } | undefined;

  private constructor(root: FileHandle) {
    this.#root = root;
  }

  /** Opens the folder. A link at the folder itself is followed only if the caller spells a trailing slash. */
  static async open(folder: string): Promise<Beneath> {
    return new Beneath(await open(folder, WALK));
  }

  /** Returns `device:inode` of the folder. */
  async identity(): Promise<string> {
    const { dev, ino } = await this.#root.stat();
    return `${dev}:${ino}`;
  }

  /** Stats a path without following links; undefined if missing or unreachable. */
  async look(path: string): Promise<Stats | undefined> {
    const place = await this.#placeOf(path);
    // Gone or unreadable, ignoring: counts as missing.
    return place === undefined ? undefined : await lstat(place).catch(() => undefined);
  }

  /** Returns the target of a link; undefined for anything else. */
  async target(path: string): Promise<Uint8Array | undefined> {
    const place = await this.#placeOf(path);
    if (place === undefined) return undefined;
    return await readlink(place, { encoding: "buffer" }).catch(() => undefined);
  }

  /** Returns the bytes of a regular file; undefined if not a readable regular file, or larger than `limit`. */
  async read(path: string, limit: number): Promise<Uint8Array | undefined> {
    const place = await this.#placeOf(path);
    const file = place === undefined ? undefined : await open(place, READ).catch(() => undefined);
    if (file === undefined) return undefined;
    try {
      const stat = await file.stat();
      if (!stat.isFile() || stat.size > limit) return undefined;
      // One byte extra detects a growing file, which must not be truncated and taken for complete.
      const buffer = Buffer.alloc(stat.size + 1);
      const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
      return bytesRead > stat.size ? undefined : buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  }

  /**
   * Returns the bytes of a regular file with this inode, size and ctime both before and after reading; undefined for any other
   * file, or above `limit`.
   */
  async readAs(
    path: string,
    seen: { readonly inode: bigint; readonly size: number; readonly ctime: bigint },
    limit: number,
  ): Promise<Uint8Array | undefined> {
    const place = await this.#placeOf(path);
    const file = place === undefined ? undefined : await open(place, READ).catch(() => undefined);
    if (file === undefined) return undefined;
    const isAsSeen = async (): Promise<boolean> => {
      const stat = await file.stat({ bigint: true });
      return (
        stat.isFile() &&
        stat.ino === seen.inode &&
        stat.ctimeNs === seen.ctime &&
        stat.size === BigInt(seen.size)
      );
    };
    try {
      if (seen.size > limit || !(await isAsSeen())) return undefined;
      const bytes = Buffer.alloc(seen.size);
      const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
      return bytesRead === bytes.length && (await isAsSeen()) ? bytes : undefined;
    } finally {
      await file.close();
    }
  }

  /** Lists the names in a folder, and which are folders; a missing folder counts as empty. */
  async entries(folder: string): Promise<readonly { readonly name: string; readonly isFolder: boolean }[]> {
    const handle = await this.#folder(folder);
    if (handle === undefined) return [];
    const place = `/proc/self/fd/${handle.fd}`;
    const entries = await readdir(place, { encoding: "latin1", withFileTypes: true }).catch(() => []);
    return entries.map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }));
  }

  async close(): Promise<void> {
    await this.#last?.handle.close();
    await this.#root.close();
  }

  async #placeOf(path: string): Promise<Buffer | undefined> {
    const handle = await this.#folder(posix.dirname(path));
    return handle === undefined ? undefined : below(handle, posix.basename(path));
  }

  async #folder(folder: string): Promise<FileHandle | undefined> {
    if (folder === "." || folder === "") return this.#root;
    if (this.#last?.folder === folder) return this.#last.handle;
    const handle = await this.#walk(folder.split("/"));
    if (handle === undefined) return undefined;
    await this.#last?.handle.close();
    this.#last = { folder, handle };
    return handle;
  }

  async #walk(names: readonly string[]): Promise<FileHandle | undefined> {
    let at = this.#root;
    for (const name of names) {
      const next = await open(below(at, name), WALK).catch(() => undefined);
      if (at !== this.#root) await at.close();
      if (next === undefined) return undefined;
      at = next;
    }
    return at;
  }
}

function below(handle: FileHandle, name: string): Buffer {
  return Buffer.concat([Buffer.from(`/proc/self/fd/${handle.fd}/`), rawPath(name)]);
}
