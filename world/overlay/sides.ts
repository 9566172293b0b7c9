/** Reads both sides of a held change: type, mode, content. */
import { join } from "node:path";
import { Beneath } from "./beneath.ts";
import type { Held, HeldChange, HeldSide, OpenSides } from "../model/held.ts";

const NONE: HeldSide = { kind: "none" };

/** Paths have one letter per byte. */
export class HeldSides implements OpenSides {
  readonly #project: Beneath;
  readonly #upper: Beneath;

  private constructor(project: Beneath, upper: Beneath) {
    this.#project = project;
    this.#upper = upper;
  }

  /** Opens both trees; call `close` afterwards. Throws the kernel's error when a tree cannot be opened. */
  static async open(held: Held): Promise<HeldSides> {
    const project = await Beneath.open(held.project);
    try {
      return new HeldSides(project, await Beneath.open(join(held.layers, "upper")));
    } catch (error) {
      await project.close();
      throw error;
    }
  }

  /** Returns `device:inode` of the project folder read here. */
  identity(): Promise<string> {
    return this.#project.identity();
  }

  /** Side before the change: the project's present file. */
  before(path: string): Promise<HeldSide> {
    return sideIn(this.#project, path);
  }

  /** Side after the change. */
  after({ path, kind }: Pick<HeldChange, "path" | "kind">): Promise<HeldSide> {
    return kind === "delete" ? Promise.resolve(NONE) : sideIn(this.#upper, path);
  }

  /** Returns the bytes of a regular file; null if larger than `limit`, or no longer a regular file. */
  async content(side: "before" | "after", path: string, limit: number): Promise<Uint8Array | null> {
    return (await (side === "before" ? this.#project : this.#upper).read(path, limit)) ?? null;
  }

  /** Lists everything except folders below a project folder, at most `limit`, sorted by name. */
  async filesBelow(
    folder: string,
    limit: number,
  ): Promise<{ readonly paths: readonly string[]; readonly more: boolean }> {
    const paths: string[] = [];
    const folders = [folder];
    for (let next = folders.pop(); next !== undefined; next = folders.pop()) {
      for (const { name, isFolder } of await this.#project.entries(next)) {
        const path = `${next}/${name}`;
        if (isFolder) folders.push(path);
        else if (paths.length >= limit) return { paths: paths.sort(), more: true };
        else paths.push(path);
      }
    }
    return { paths: paths.sort(), more: false };
  }

  async close(): Promise<void> {
    await this.#project.close();
    await this.#upper.close();
  }
}

async function sideIn(root: Beneath, path: string): Promise<HeldSide> {
  const stat = await root.look(path);
  if (stat === undefined) return NONE;
  if (stat.isSymbolicLink()) {
    const target = await root.target(path);
    return target === undefined ? NONE : { kind: "link", target };
  }
  const mode = stat.mode & 0o7777;
  if (stat.isFile()) return { kind: "file", mode, size: stat.size };
  return { kind: stat.isDirectory() ? "folder" : "other", mode };
}
