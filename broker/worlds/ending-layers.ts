import type { World } from "../../world/backend.ts";

/**
 * Overlays whose worlds are ending: until a world is gone its overlay is mounted, and nobody may touch its layers. Layers that are
 * dropped with their world are ending until they are removed.
 */
export class EndingLayers {
  readonly #ending = new Map<string, Promise<void>>();

  /** Notes a world that was asked to end; `over` is its end, with the removal of layers that nobody holds, and is returned. */
  follow({ spec: { access } }: World, over: Promise<void>): Promise<void> {
    if (access.kind !== "overlay") return over;
    // One that cannot end keeps nobody waiting, ignoring: who ended it hears of it.
    const gone = over.catch(() => {}).finally(() => this.#ending.delete(access.layers));
    this.#ending.set(access.layers, gone);
    return over;
  }

  /** At once where no world is ending. */
  async untilGone(layers: string): Promise<void> {
    await this.#ending.get(layers);
  }
}
