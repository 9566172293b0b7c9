import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Mount points for the runtime and for init. */
const FOLDERS = ["dev", "etc", "host", "proc", "run", "sys", "tmp"];

/** Targets for the runtime's own file binds; otherwise the runtime makes them, owned by a foreign user. */
const FILES = [
  "etc/group",
  "etc/hostname",
  "etc/hosts",
  "etc/passwd",
  "etc/resolv.conf",
  "run/.containerenv",
];

/**
 * Makes the containers' root: only mount points. The host's tree is bound below; init's world does not show the root. Safe to
 * repeat, also concurrently.
 */
export async function makeEmptyRoot(root: string): Promise<void> {
  for (const name of FOLDERS) await mkdir(join(root, name), { recursive: true, mode: 0o755 });
  for (const name of FILES) {
    await mkdir(dirname(join(root, name)), { recursive: true });
    await writeFile(join(root, name), "", { flag: "a", mode: 0o644 });
  }
}
