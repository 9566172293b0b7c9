import { BoundedMap } from "../model/bounded-map.ts";
import type { ProgramStart } from "../../world/backend.ts";
import type { Effective } from "../model/effective.ts";
import { decideStart, type StartDecision, type Where } from "../policy/index.ts";
import { BELIEVED_MS } from "../policy/program-paths.ts";

/** Decisions kept for one command, and how long its words may be to be kept, in characters. */
const MAX_KEPT = 500;
const MAX_WORDS = 4096;

type Kept = { readonly decision: StartDecision; readonly at: number };

/**
 * What was decided about the starts of one command: builds start the same programs by the thousand. It holds as long as the
 * policies are the very same ones, and what names stand for as long as elsewhere.
 */
export class KeptStarts {
  readonly #wheres: readonly [Where, ...Where[]];
  readonly #kept = new BoundedMap<string, Kept>(MAX_KEPT);
  #policies: Effective["policies"] | undefined;

  constructor(wheres: readonly [Where, ...Where[]]) {
    this.#wheres = wheres;
  }

  of(policies: Effective["policies"], start: ProgramStart): StartDecision {
    if (!isSame(policies, this.#policies)) this.#kept.clear();
    this.#policies = policies;
    const { files, cut, unread, starter } = start;
    const key = JSON.stringify([files, cut, unread, starter]);
    const known = this.#kept.get(key);
    this.#kept.delete(key);
    const now = performance.now();
    const fresh = known !== undefined && now - known.at < BELIEVED_MS;
    const kept = fresh ? known : { decision: decideStart(policies, start, this.#wheres), at: now };
    if (key.length <= MAX_WORDS) this.#kept.set(key, kept);
    return kept.decision;
  }
}

function isSame(policies: Effective["policies"], before: Effective["policies"] | undefined): boolean {
  return policies.length === before?.length && policies.every((policy, index) => policy === before[index]);
}
