import { chmod, mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { WorldUnavailable } from "../backend.ts";

/**
 * Makes the folders of one overlay: `upper` takes the changes, `work` is the kernel's scratch room and must lie
 * on the same file system. Throws {@link WorldUnavailable} when they cannot be made.
 */
export async function prepareLayers(layers: string): Promise<void> {
  try {
    await mkdir(join(layers, "upper"), { recursive: true, mode: 0o755 });
    await mkdir(join(layers, "work"), { recursive: true, mode: 0o700 });
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    throw new WorldUnavailable(
      `Cannot make overlay layers in '${layers}': ${text}`,
      "Free space there, or mend its permissions",
      { cause: error },
    );
  }
}

/**
 * Removes an overlay's folders. The kernel leaves `work/work` with mode 000, which an ordinary user cannot
 * list before changing it.
 */
export async function removeLayers(layers: string): Promise<void> {
  await chmod(join(layers, "work", "work"), 0o700).catch(() => {
    // Never mounted, or removed already, ignoring: the removal below decides.
  });
  await rm(layers, { recursive: true, force: true });
}

/** Removes the layers that nobody touched for `maxAgeMs`; returns how many. */
export async function expireLayers(root: string, maxAgeMs: number, now: number): Promise<number> {
  const names = await readdir(root).catch(() => []);
  let removed = 0;
  for (const name of names.filter((entry) => entry.startsWith("spn_"))) {
    const made = await stat(join(root, name)).catch(() => undefined);
    if (made === undefined || now - made.mtimeMs < maxAgeMs) continue;
    await removeLayers(join(root, name));
    removed += 1;
  }
  return removed;
}
