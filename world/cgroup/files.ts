/** Reading and writing the small files of a cgroup. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Controllers that a limit of a spec needs, in the order in which people read them. */
export const CONTROLLERS = ["memory", "cpu", "pids"] as const;

export type Controller = (typeof CONTROLLERS)[number];

/** The words of a file such as `cgroup.controllers`. Throws when it cannot be read. */
export function words(folder: string, file: string): readonly string[] {
  return readFileSync(join(folder, file), "utf8").split(/\s+/).filter(Boolean);
}

/** Writes into a file that is there: the kernel's answer to a value it does not take is the error. */
export function put(folder: string, file: string, value: string): void {
  writeFileSync(join(folder, file), value, { flag: "r+" });
}

export function has(folder: string, file: string): boolean {
  return existsSync(join(folder, file));
}

/** Enables what can be enabled for groups below `folder`, each alone, and returns what then is. */
export function enable(folder: string, wanted: readonly Controller[]): readonly Controller[] {
  const offered = words(folder, "cgroup.controllers");
  const before = words(folder, "cgroup.subtree_control");
  for (const controller of wanted) {
    if (!offered.includes(controller) || before.includes(controller)) continue;
    try {
      put(folder, "cgroup.subtree_control", `+${controller}`);
    } catch {
      // The kernel refuses this one here, ignoring: what is read back says so.
    }
  }
  const after = words(folder, "cgroup.subtree_control");
  return wanted.filter((controller) => after.includes(controller));
}

/** The name of a system error, for a sentence. */
export function errnoOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  return code ?? (error instanceof Error ? error.message : String(error));
}
