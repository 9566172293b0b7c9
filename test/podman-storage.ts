/** What podman leaves of itself where a container of root ended by a kill. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** A mount of its own while a container of root is there. One that is killed leaves it, until podman is called again. */
const STORAGE = "/var/lib/containers/storage/overlay";

/** Call it before the first container; the result, after the last one, takes back what came in between. */
export function watchPodmanStorage(): () => void {
  const before = isMounted();
  return () => {
    if (before || !isMounted()) return;
    // Not lazily: while a container of anybody's runs, it stays.
    const { status, stderr } = spawnSync("umount", [STORAGE], { encoding: "utf8" });
    if (status !== 0) process.stderr.write(`podman's '${STORAGE}' stays mounted: ${stderr.trim()}\n`);
  };
}

function isMounted(): boolean {
  const points = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4]);
  return points.includes(STORAGE);
}
