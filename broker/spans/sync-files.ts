import { fdatasync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";

const dataSync = promisify(fdatasync);

/** Settles when the data of `live` and of files beside it are on the disk, and with any of those also the names in their folder. */
export async function syncAll(live: number, beside: readonly string[]): Promise<void> {
  for (const path of beside) await syncPath(path);
  await dataSync(live);
  const [first] = beside;
  if (first !== undefined) await syncPath(dirname(first));
}

/** A file that is gone was dropped, and needs no place on the disk. */
async function syncPath(path: string): Promise<void> {
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return;
    throw error;
  }
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
