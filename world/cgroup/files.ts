/** Reads and writes the control files of a cgroup. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Controllers for the limits of a spec, in display order. */
export const CONTROLLERS = ["memory", "cpu", "pids"] as const;

export type Controller = (typeof CONTROLLERS)[number];

/** Returns the words of a file such as `cgroup.controllers`. Throws if unreadable. */
export function words(folder: string, file: string): readonly string[] {
  return readFileSync(join(folder, file), "utf8").split(/\s+/).filter(Boolean);
}

/** Writes to an existing file; throws the kernel's error for a rejected value. */
export function put(folder: string, file: string, value: string): void {
  writeFileSync(join(folder, file), value, { flag: "r+" });
}

export function has(folder: string, file: string): boolean {
  return existsSync(join(folder, file));
}

/** Enables each wanted controller below `folder` separately; returns the controllers now enabled. */
export function enable(folder: string, wanted: readonly Controller[]): readonly Controller[] {
  const offered = words(folder, "cgroup.controllers");
  const before = words(folder, "cgroup.subtree_control");
  for (const controller of wanted) {
    if (!offered.includes(controller) || before.includes(controller)) continue;
    try {
      put(folder, "cgroup.subtree_control", `+${controller}`);
    } catch {
      // The kernel refuses the controller here, ignoring: the result is read back below.
    }
  }
  const after = words(folder, "cgroup.subtree_control");
  return wanted.filter((controller) => after.includes(controller));
}

/** Names a system error, for use in a sentence. */
export function errnoOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  return code ?? (error instanceof Error ? error.message : String(error));
}
