import { close, fdatasync, fsync, open } from "node:fs";
import { dirname } from "node:path";
import { promisify } from "node:util";

const dataSync = promisify(fdatasync);
const openFile = promisify(open);
const syncFile = promisify(fsync);
const closeFile = promisify(close);

/** Settles when the files' data are on the disk, and with `beside` also the names in the folder that holds it. */
export async function syncAll(files: readonly number[], beside: string | undefined): Promise<void> {
  for (const file of files) await dataSync(file);
  if (beside === undefined) return;
  const folder = await openFile(dirname(beside), "r");
  try {
    await syncFile(folder);
  } finally {
    await closeFile(folder);
  }
}
