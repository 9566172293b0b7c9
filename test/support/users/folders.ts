/** A folder in an actor's home, where a world shows the host's own tree and not a folder of its own. */
import { spawnSync } from "node:child_process";
import { chownSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Actor } from "./users.ts";

export class HomeFolder {
  readonly path: string;
  readonly #actor: Actor;

  constructor(actor: Actor) {
    this.#actor = actor;
    this.path = mkdtempSync(join(actor.home, "substrate-test-"));
    this.own();
  }

  /** Writes a file as the actor's own. */
  write(name: string, content: string): string {
    const path = join(this.path, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    this.own();
    return path;
  }

  /** Gives everything in it to the actor. */
  own(): void {
    chownAll(this.path, this.#actor);
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

function chownAll(path: string, actor: Actor): void {
  // What this process makes is the actor's own then; and the kernel closes the work folder of an overlay to its owner too.
  if (process.getuid?.() === actor.uid) return;
  try {
    const stat = lstatSync(path);
    if (stat.isSymbolicLink()) return;
    chownSync(path, actor.uid, actor.gid);
    if (stat.isDirectory()) for (const name of readdirSync(path)) chownAll(join(path, name), actor);
  } catch (error) {
    // Gone, ignoring: a broker whose home lies in the folder removes its worlds' files meanwhile.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

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
