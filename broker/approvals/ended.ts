import { quoted, type Refusal, refusal } from "../model/refusal.ts";
import type { QuestionEnd } from "./pending.ts";

type Past = { readonly how: QuestionEnd; readonly at: number; readonly key: string };

/** A broker remembers so many ends; older ones are as unknown as an id that never was. */
const MAX_PAST = 1024;

/** How long the same question is not asked again after a person said no. */
export const DENIAL_MS = 60_000;

const WORDS: Readonly<Record<QuestionEnd, string>> = {
  once: "was approved for one run",
  session: "was approved for its session",
  always: "was approved for always",
  deny: "was denied",
  expired: "expired without an answer",
  dropped: "was dropped, because too many others were asked after it",
  policy_changed: "ended with a changed policy or folder",
  broker_stopped: "ended with its broker",
};

/** Questions that are over: so that a second answer is told what the first one was. */
export class Ended {
  readonly #past = new Map<string, Past>();
  readonly #denied = new Map<string, string>();

  add(id: string, key: string, how: QuestionEnd): void {
    this.#past.set(id, { how, at: Date.now(), key });
    if (how === "deny") this.#denied.set(key, id);
    else this.#denied.delete(key);
    const [oldest] = this.#past;
    if (this.#past.size > MAX_PAST && oldest !== undefined) this.#forget(...oldest);
  }

  denialOf(key: string): { readonly approval: string; readonly restMs: number } | undefined {
    const approval = this.#denied.get(key) ?? "";
    const restMs = (this.#past.get(approval)?.at ?? 0) + DENIAL_MS - Date.now();
    return restMs > 0 ? { approval, restMs } : undefined;
  }

  refusalOf(id: string): Refusal {
    const past = this.#past.get(id);
    const hint =
      "GET /v1/approvals, or 'substrate approvals', lists what waits; a call asks again by being made again";
    if (past === undefined)
      return refusal("not_found", `No question ${quoted(id)} waits for an answer`, hint);
    const when = new Date(past.at).toISOString();
    const code = past.how === "policy_changed" ? "policy_changed" : "not_found";
    return refusal(code, `${quoted(id)} waits for no answer: it ${WORDS[past.how]} at ${when}`, hint);
  }

  #forget(id: string, { key }: Past): void {
    this.#past.delete(id);
    if (this.#denied.get(key) === id) this.#denied.delete(key);
  }
}
