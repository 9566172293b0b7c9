/** A small ext4 file system in a file, that can be filled to the last byte and emptied again. */
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Actor } from "../actors.ts";

const PIECE = 64 * 1024;

export class SmallDisk implements Disposable {
  /** Its root, which belongs to the actor. */
  readonly folder: string;
  readonly #around: string;

  private constructor(around: string) {
    this.#around = around;
    this.folder = join(around, "disk");
  }

  /** Or why there is none: root alone can mount one, for whomever it will belong to. */
  static make(actor: Actor, mebibytes: number): SmallDisk | string {
    const disk = new SmallDisk(mkdtempSync(join(tmpdir(), "sb-small-")));
    const { uid, gid } = actor;
    const script = `set -e
chmod 755 "$1"; mkdir "$2"; truncate -s ${mebibytes}M "$1/image"
mkfs.ext4 -q -m 0 -O ^has_journal "$1/image"; mount -o loop "$1/image" "$2"; rmdir "$2/lost+found"; chown ${uid}:${gid} "$2"`;
    const made = spawnSync("sh", ["-c", script, "sh", disk.#around, disk.folder], { encoding: "utf8" });
    if (made.status === 0) return disk;
    disk[Symbol.dispose]();
    return `no small file system can be mounted: ${made.stderr.trim() || String(made.error)}`;
  }

  /** Takes all room but so many bytes. Where less is left already, that stays. */
  fill(leave: number): void {
    const file = openSync(join(this.folder, "fill"), "w");
    try {
      for (let size = PIECE; size >= 1; size = Math.floor(size / 16)) {
        while (this.#room() >= leave + size && tryWrite(file, size));
      }
    } finally {
      closeSync(file);
    }
  }

  free(): void {
    rmSync(join(this.folder, "fill"), { force: true });
  }

  [Symbol.dispose](): void {
    spawnSync("umount", ["-l", this.folder]);
    rmSync(this.#around, { recursive: true, force: true });
  }

  #room(): number {
    // Not `bfree`: ext4 keeps some for itself (ext4(5), reserved_clusters), also from root.
    const { bavail, bsize } = statfsSync(this.folder);
    return bavail * bsize;
  }
}

function tryWrite(file: number, size: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(size, 1)) === size;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOSPC") return false;
    throw error;
  }
}
