import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from "node:fs";
import { chmod, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { SYSTEM } from "../model/system.ts";
import { WorldUnavailable } from "../model/unavailable.ts";

/**
 * Prefix for held changes under removal: `wld_…` like stray writes of a dead world, so the next sweep completes an interrupted
 * removal.
 */
const NAMELESS = "wld_gone_";

const SLASH = Buffer.from("/");

/**
 * Makes the folders of one overlay: `upper` takes the changes, `work` is the kernel's scratch space on the same file system.
 * Synchronous: a command waits, and asynchronous calls would take longer. Returns the time in ns since the epoch by the kernel's
 * clock for file stamps, which lags behind the broker's by up to one tick. Throws {@link WorldUnavailable} on failure.
 */
export function prepareLayers(folder: string): bigint {
  const upper = join(folder, "upper");
  try {
    mkdirSync(join(folder, "work"), { recursive: true, mode: 0o700 });
    mkdirSync(upper, { recursive: true, mode: 0o755 });
    return statSync(upper, { bigint: true }).ctimeNs;
  } catch (error) {
    throw unmakable(folder, error);
  }
}

/** Makes the error for layers that cannot be made. */
export function unmakable(layers: string, cause: unknown): WorldUnavailable {
  const text = cause instanceof Error ? cause.message : String(cause);
  return new WorldUnavailable(
    `Cannot make overlay layers in '${layers}': ${text}`,
    "Free space there, or mend the permissions of the folder",
    { cause },
  );
}

/**
 * Removes an overlay's folders. The kernel leaves `work/work` with mode 000, and commands may close their own folders: an
 * ordinary user must change the modes first.
 */
export async function removeLayers(layers: string): Promise<void> {
  await openFolders(Buffer.from(layers));
  try {
    await rm(layers, { recursive: true, force: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENAMETOOLONG") throw error;
    await removeDeep(layers);
  }
}

/** Removes nested folders deeper than PATH_MAX: chmod and rm descend step by step and follow no link. */
export async function removeDeep(layers: string): Promise<void> {
  const run = promisify(execFile);
  await run("chmod", ["-R", "u+rwx", "--", layers], { env: SYSTEM }).catch(() => {
    // A mode cannot be changed, ignoring: the removal decides.
  });
  await run("rm", ["-rf", "--one-file-system", "--", layers], { env: SYSTEM });
}

/** By bytes: a command may give a folder a name that is not UTF-8, and close it. */
async function openFolders(folder: Buffer): Promise<void> {
  await chmod(folder, 0o700).catch(() => {
    // Already gone, ignoring: the removal decides.
  });
  const entries = await readdir(folder, { withFileTypes: true, encoding: "buffer" }).catch(() => []);
  for (const entry of entries)
    if (entry.isDirectory()) await openFolders(Buffer.concat([folder, SLASH, entry.name]));
}

/**
 * Removes useless layers below `root`: spans rejected by `mayHold`, and layers with an empty upper folder. Reads the names before
 * returning. Settles with the number removed; layers that resist stay.
 */
export async function dropLeftLayers(root: string, mayHold: (span: string) => boolean): Promise<number> {
  const left = namesIn(root).filter((name) => name.startsWith("spn_"));
  let removed = 0;
  for (const span of left) {
    const layers = join(root, span);
    if (mayHold(span) && !isEmpty(join(layers, "upper"))) continue;
    removed += await removeLayers(layers).then(
      () => 1,
      () => 0,
    );
  }
  return removed;
}

function namesIn(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** An unreadable folder does not count as empty. */
function isEmpty(folder: string): boolean {
  try {
    return namesIn(folder).length === 0;
  } catch {
    return false;
  }
}

/**
 * Removes expired data below `root` and returns the number: held changes (`spn_…`) older than `maxAgeMs`, and stray writes
 * (`wld_…`) of dead worlds. Folders in `live`, and folders that resist, stay. Held changes are renamed first, so that a
 * half-removed set is never taken for complete.
 */
export async function expireLayers(
  root: string,
  maxAgeMs: number,
  now: number,
  live: Pick<ReadonlySet<string>, "has">,
): Promise<number> {
  let removed = 0;
  for (const name of await readdir(root).catch(() => [])) {
    const layers = join(root, name);
    if (live.has(layers) || !(await isExpired(layers, name, now - maxAgeMs))) continue;
    const nameless = name.startsWith("spn_") ? `${root}/${NAMELESS}${name}` : layers;
    // No await between check and rename: later requests no longer find the changes.
    if (live.has(layers) || !renamed(layers, nameless)) continue;
    removed += await removeLayers(nameless).then(
      () => 1,
      () => 0,
    );
  }
  return removed;
}

function renamed(from: string, to: string): boolean {
  if (from === to) return true;
  try {
    renameSync(from, to);
    return true;
  } catch {
    // The folder resists, ignoring: the next sweep tries again.
    return false;
  }
}

async function isExpired(layers: string, name: string, before: number): Promise<boolean> {
  if (name.startsWith("wld_")) return true;
  const made = name.startsWith("spn_") ? await stat(layers).catch(() => undefined) : undefined;
  return made !== undefined && made.mtimeMs <= before;
}
