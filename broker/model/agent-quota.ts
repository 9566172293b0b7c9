/** Bounds of a store that all agents share: an agent's entries evict its own, and those of labels only other labels' entries. */
export class AgentQuota {
  /** The agents of the entries, by key; the one not used for longest comes first. */
  readonly #agents = new Map<string, string>();
  readonly #counts = new Map<string, number>();
  readonly #most: { readonly ofAgent: number; readonly ofLabels: number };
  readonly #isLabel: (agent: string) => boolean;

  /** `isLabel`: whether an agent lacks its own socket. Labels cost nothing, so all of them together have a bound too. */
  constructor(
    most: { readonly ofAgent: number; readonly ofLabels: number },
    isLabel: (agent: string) => boolean,
  ) {
    this.#most = most;
    this.#isLabel = isLabel;
  }

  /** Notes that an agent's entry is used, or new. Returns the key of the entry that has to go. */
  use(key: string, agent: string): string | undefined {
    this.drop(key);
    this.#agents.set(key, agent);
    this.#counts.set(agent, (this.#counts.get(agent) ?? 0) + 1);
    const gone = this.#oldestTooMany(agent);
    if (gone !== undefined) this.drop(gone);
    return gone;
  }

  drop(key: string): void {
    const agent = this.#agents.get(key);
    if (agent === undefined) return;
    this.#agents.delete(key);
    const left = (this.#counts.get(agent) ?? 0) - 1;
    if (left > 0) this.#counts.set(agent, left);
    else this.#counts.delete(agent);
  }

  #oldestTooMany(agent: string): string | undefined {
    const { ofAgent, ofLabels } = this.#most;
    if ((this.#counts.get(agent) ?? 0) > ofAgent) return this.#oldest((owner) => owner === agent);
    if (this.#agents.size <= ofLabels || !this.#isLabel(agent)) return undefined;
    const labels = [...this.#counts].filter(([name]) => this.#isLabel(name));
    const count = labels.reduce((sum, [, entries]) => sum + entries, 0);
    return count > ofLabels ? this.#oldest((owner) => this.#isLabel(owner)) : undefined;
  }

  #oldest(isOwner: (agent: string) => boolean): string | undefined {
    for (const [key, agent] of this.#agents) if (isOwner(agent)) return key;
    return undefined;
  }
}
