/** Removes cgroups: a world's own, and those of dead brokers. */
import { readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { errnoOf } from "./files.ts";
import { isOrphan, type Maker } from "./names.ts";

/** Removes a cgroup and all below. Returns false while processes remain: the kernel removes only empty cgroups. */
export function removeGroup(folder: string): boolean {
  try {
    for (const entry of readdirSync(folder, { withFileTypes: true }))
      if (entry.isDirectory()) removeGroup(join(folder, entry.name));
    rmdirSync(folder);
    return true;
  } catch (error) {
    return errnoOf(error) === "ENOENT";
  }
}

/** Removes the cgroups of dead brokers; a cgroup with dying processes is left to the next sweep. */
export function sweep(base: string, maker: Maker): void {
  for (const name of readdirSync(base)) if (isOrphan(name, maker)) removeGroup(join(base, name));
}
