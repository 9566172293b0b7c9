import { spawnSync } from "node:child_process";

/**
 * Removes folders as whoever runs the suite. Commands close folders that they write, the kernel closes an overlay's `work`
 * (mode 0), and some trees are deeper than a path can be long: Node alone cannot remove those. Throws when something stays.
 */
export function removeTrees(...paths: readonly string[]): void {
  // What is not there, and what is not ours to open, rm says in its own words.
  spawnSync("chmod", ["-R", "u+rwX", "--", ...paths], { stdio: "ignore" });
  const removed = spawnSync("rm", ["-rf", "--", ...paths], { encoding: "utf8" });
  if (removed.status !== 0) throw new Error(`Cannot remove '${paths.join("', '")}': ${removed.stderr}`);
}
