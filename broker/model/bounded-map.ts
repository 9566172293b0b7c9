/** A cache of bounded size: a full cache evicts its oldest entry. */
export class BoundedMap<Key, Value> extends Map<Key, Value> {
  readonly #most: number;

  constructor(most: number) {
    super();
    this.#most = most;
  }

  override set(key: Key, value: Value): this {
    if (this.size >= this.#most && !this.has(key)) {
      const [oldest] = this.keys();
      if (oldest !== undefined) this.delete(oldest);
    }
    return super.set(key, value);
  }
}
