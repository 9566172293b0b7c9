import type { Database, RootDatabase } from "lmdb";
import type { TraceDropped } from "../../schemas/generated/types.ts";
import type { Head } from "./chain.ts";
import type { Position } from "./trace-log.ts";

/** Up to where the trace is indexed, and the chain's head there. */
export type Watermark = { readonly end: Position; readonly head: Head };

/** How the rows are written. An index of another form is made again from the trace. */
const FORM = 4;

const MAX_LOST_HEADS = 16;

type Known = {
  watermark: Watermark;
  form: number;
  told: number;
  dropped: TraceDropped;
};

/** What the database knows of the trace as a whole. */
export class IndexState {
  readonly #state: Database<unknown, string>;
  readonly #lost: Database<readonly string[], string>;

  constructor(root: RootDatabase) {
    this.#state = root.openDB({ name: "state" });
    this.#lost = root.openDB({ name: "lost-heads" });
  }

  get watermark(): Watermark | undefined {
    return this.#get("form") === FORM ? this.#get("watermark") : undefined;
  }

  /** The chain's head as it was known last, in whatever form the index is. */
  get head(): Head | undefined {
    return this.#get("watermark")?.head;
  }

  /**
   * The number of the last line that followers were told while an index that was lost is being made again: a broker that is killed
   * meanwhile leaves a watermark of older lines.
   */
  get told(): number {
    return this.#get("told") ?? Number.NEGATIVE_INFINITY;
  }

  async putTold(seq: number): Promise<void> {
    await this.#state.put("told", seq);
  }

  async forgetTold(): Promise<void> {
    await this.#state.remove("told");
  }

  putWatermark(watermark: Watermark): readonly Promise<boolean>[] {
    return [this.#state.put("form", FORM), this.#state.put("watermark", watermark)];
  }

  /** What the last line about dropped files said. */
  get dropped(): TraceDropped | undefined {
    return this.#get("dropped");
  }

  async putDropped(dropped: TraceDropped): Promise<void> {
    await this.#state.put("dropped", dropped);
  }

  /** Heads that the trace had and has no more: somebody cut it or put another one there. Kept for `trace verify`. */
  get lostHeads(): readonly string[] {
    return this.#lost.get("heads") ?? [];
  }

  async addLostHead(head: string): Promise<void> {
    await this.#lost.put("heads", [...new Set([...this.lostHeads, head])].slice(-MAX_LOST_HEADS));
  }

  #get<Name extends keyof Known>(name: Name): Known[Name] | undefined {
    return this.#state.get(name) as Known[Name] | undefined;
  }
}
