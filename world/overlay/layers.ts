import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, statSync } from "node:fs";
import { chmod, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { WorldUnavailable } from "../model/unavailable.ts";

/** What is being removed is called as what strayed in a world that is gone: whoever sweeps next goes on with it. */
const NAMELESS = "wld_gone_";

/**
 * Makes the folders of one overlay: `upper` takes the changes, `work` is the kernel's scratch room and must lie
 * on the same file system. At once: it is on the path of a command, and takes less time than it takes to ask for it.
 * Returns when, in ns since the epoch by the clock with which the kernel stamps files: it lags behind ours by up to one of its
 * ticks. Throws {@link WorldUnavailable} when they cannot be made.
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

/** What to throw when layers cannot be made. */
export function unmakable(layers: string, cause: unknown): WorldUnavailable {
  const text = cause instanceof Error ? cause.message : String(cause);
  return new WorldUnavailable(
    `Cannot make overlay layers in '${layers}': ${text}`,
    "Free space there, or mend its permissions",
    { cause },
  );
}

/**
 * Removes an overlay's folders. The kernel leaves `work/work` with mode 000, and a command may have done the same to
 * its own: an ordinary user cannot look into such folders before changing them.
 */
export async function removeLayers(layers: string): Promise<void> {
  await openFolders(layers);
  try {
    await rm(layers, { recursive: true, force: true });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENAMETOOLONG") throw error;
    await removeDeep(layers);
  }
}

/** Folders in folders, deeper than a path can be long: these two go down step by step, and follow no link on the way. */
async function removeDeep(layers: string): Promise<void> {
  const run = promisify(execFile);
  await run("chmod", ["-R", "u+rwx", "--", layers]).catch(() => {
    // What it cannot change, ignoring: the removal decides.
  });
  await run("rm", ["-rf", "--one-file-system", "--", layers]);
}

async function openFolders(folder: string): Promise<void> {
  await chmod(folder, 0o700).catch(() => {
    // Gone already, ignoring: the removal decides.
  });
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries) if (entry.isDirectory()) await openFolders(join(folder, entry.name));
}

/**
 * Removes the layers below `root` that hold nothing anybody could ask for: those whose span `mayHold` denies, and those
 * whose upper layer is empty. Reads the names before it returns. Settles with how many are gone; one that resists stays.
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

/** One that cannot be looked into is not called empty. */
function isEmpty(folder: string): boolean {
  try {
    return namesIn(folder).length === 0;
  } catch {
    return false;
  }
}

/**
 * Removes what nobody needs below `root` and returns how many: held changes (`spn_…`) made more than `maxAgeMs` ago, and
 * stray writes (`wld_…`) of worlds that are gone. What is `live` stays, and so does one that resists. Held changes lose their
 * name first: half of them must not be taken for all when the removal is cut off.
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
    // Nothing may come between the look and the renaming: who asks for them later finds none.
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
    // It resists, ignoring: it is tried at the next sweep.
    return false;
  }
}

async function isExpired(layers: string, name: string, before: number): Promise<boolean> {
  if (name.startsWith("wld_")) return true;
  const made = name.startsWith("spn_") ? await stat(layers).catch(() => undefined) : undefined;
  return made !== undefined && made.mtimeMs <= before;
}
