/** What shims do while no broker runs: they can ask nobody, and read one word. */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PolicyDocument } from "../../schemas/generated/types.ts";

export type Offline = "deny" | "allow";

/** The strictest of the policies that were read: a shim cannot tell which of them would hold for it. None is a no. */
export function offlineRule(documents: readonly PolicyDocument[]): Offline {
  const allows = ({ shims, mode = "observe" }: PolicyDocument): boolean =>
    (shims?.offline ?? (mode === "observe" ? "allow" : "deny")) === "allow";
  return documents.length > 0 && documents.every(allows) ? "allow" : "deny";
}

/** The file that shims read it from (`shim/main.c`). */
export class OfflineFile {
  readonly #folder: string;
  readonly #onFault: (what: string, error: unknown) => void;
  #written: Offline | undefined;

  constructor(folder: string, onFault: (what: string, error: unknown) => void) {
    this.#folder = folder;
    this.#onFault = onFault;
  }

  /** Writes it when it is another one now. A reader sees one word or the other. */
  follow(documents: readonly PolicyDocument[]): void {
    const rule = offlineRule(documents);
    if (rule === this.#written) return;
    const draft = join(this.#folder, ".offline.tmp");
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
      writeFileSync(draft, `${rule}\n`);
      renameSync(draft, join(this.#folder, ".offline"));
      this.#written = rule;
    } catch (error) {
      this.#onFault(`Shims are not told to '${rule}' while no broker runs`, error);
    }
  }
}
