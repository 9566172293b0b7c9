type OnQuestion = (approval: string) => void;

/** Calls that want to hear at once which of their questions wait for a person, by the call's request id. */
export class QuestionListeners {
  readonly #byCall = new Map<string, Set<OnQuestion>>();

  /** Returns the end of the listening. */
  listen(call: string, onQuestion: OnQuestion): () => void {
    const listeners = this.#byCall.get(call) ?? new Set();
    this.#byCall.set(call, listeners.add(onQuestion));
    return () => {
      listeners.delete(onQuestion);
      if (listeners.size === 0) this.#byCall.delete(call);
    };
  }

  tell(call: string | undefined, approval: string): void {
    for (const onQuestion of this.#byCall.get(call ?? "") ?? []) onQuestion(approval);
  }
}
