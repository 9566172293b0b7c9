import type { Database, RootDatabase } from "lmdb";
import { MAX_ID } from "./span-entry.ts";

/** Which spans name which as their parent, in the order of their ids: that in which they were made. */
export class SpanChildren {
  readonly #stored: Database<string, string>;
  /** What LMDB does not show yet. */
  readonly #fresh = new Map<string, Set<string>>();

  constructor(root: RootDatabase) {
    this.#stored = root.openDB({ name: "children", dupSort: true, encoding: "ordered-binary" });
  }

  /** Known from now on, and to be {@link put} later. */
  add(parent: string | null, span: string): void {
    if (parent === null) return;
    const fresh = this.#fresh.get(parent);
    if (fresh === undefined) this.#fresh.set(parent, new Set([span]));
    else fresh.add(span);
  }

  put(parent: string | null, span: string): readonly Promise<boolean>[] {
    return parent === null ? [] : [this.#stored.put(parent, span)];
  }

  /** LMDB shows it. */
  committed(parent: string | null, span: string): void {
    const fresh = parent === null ? undefined : this.#fresh.get(parent);
    if (parent === null || fresh?.delete(span) !== true) return;
    if (fresh.size === 0) this.#fresh.delete(parent);
  }

  remove(parent: string | null, span: string): readonly Promise<boolean>[] {
    return parent === null ? [] : [this.#stored.remove(parent, span)];
  }

  clearAsync(): Promise<void> {
    return this.#stored.clearAsync();
  }

  /** Those behind `after`, at most `limit`. */
  of(parent: string, after: string | undefined, limit?: number): readonly string[] {
    if (parent.length > MAX_ID) return [];
    const behind = {
      ...(after === undefined ? {} : { start: after, exclusiveStart: true }),
      ...(limit === undefined ? {} : { limit }),
    };
    const stored = [...this.#stored.getValues(parent, behind)];
    const fresh = [...(this.#fresh.get(parent) ?? [])].filter((span) => after === undefined || span > after);
    if (fresh.length === 0) return stored;
    return [...new Set([...stored, ...fresh])].sort().slice(0, limit);
  }
}
