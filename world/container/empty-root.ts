import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Where a runtime or init mounts something. */
const FOLDERS = ["dev", "etc", "host", "proc", "run", "sys", "tmp"];

/** What a runtime binds a file of its own onto: there already, it makes none as a user that is not ours. */
const FILES = [
  "etc/group",
  "etc/hostname",
  "etc/hosts",
  "etc/passwd",
  "etc/resolv.conf",
  "run/.containerenv",
];

/**
 * Makes the root that containers start from: mount points and nothing else. The host's tree is bound below it, and the
 * world that init makes does not show it. Safe to repeat, also by several at once.
 */
export async function makeEmptyRoot(root: string): Promise<void> {
  for (const name of FOLDERS) await mkdir(join(root, name), { recursive: true, mode: 0o755 });
  for (const name of FILES) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), "", { flag: "a", mode: 0o644 });
  }
}
