/** Removing groups: a world's own, and what a dead broker left. */
import { readdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { errnoOf } from "./files.ts";
import { isOrphan, type Maker } from "./names.ts";

/** Removes a group and those below it. False while processes are in it: the kernel removes only what is empty. */
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

/** Removes the groups of brokers that are gone; one whose processes are still dying is left to the next sweep. */
export function sweep(base: string, maker: Maker): void {
  for (const name of readdirSync(base)) if (isOrphan(name, maker)) removeGroup(join(base, name));
}
