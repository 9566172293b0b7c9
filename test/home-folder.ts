/** A folder in an actor's home, where a world shows the host's own tree and not a folder of its own. */
import { chownSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Actor } from "./actors.ts";

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
  const stat = lstatSync(path);
  if (stat.isSymbolicLink()) return;
  chownSync(path, actor.uid, actor.gid);
  if (stat.isDirectory()) for (const name of readdirSync(path)) chownAll(join(path, name), actor);
}
