import type { Decision } from "./policy/index.ts";

/** How many decisions are kept, and how long a command may be to be kept, in characters. */
const MAX_KEPT = 2000;
const MAX_COMMAND = 4096;

/** All that a decision depends on; it is a pure function of these. */
export type Question = {
  /** Hash of everything that holds: an edited policy has another. */
  readonly policy: string;
  readonly shell: string;
  readonly command: string;
  /** The request's variables, sorted. */
  readonly env: string;
  readonly cwd: string;
  readonly project: string;
};

/**
 * Decisions that were made before. Agents repeat themselves, and reading and deciding a command costs more than
 * anything else that happens on its path in this process. The longest unused goes first.
 */
export class Decisions {
  readonly #kept = new Map<string, Decision>();

  of(question: Question, decide: () => Decision): Decision {
    if (question.command.length + question.env.length > MAX_COMMAND) return decide();
    const { policy, shell, project, cwd, command, env } = question;
    const key = `${policy}\0${shell}\0${project}\0${cwd}\0${env}\0${command}`;
    const decision = this.#kept.get(key) ?? decide();
    this.#kept.delete(key);
    this.#kept.set(key, decision);
    if (this.#kept.size > MAX_KEPT) this.#forgetOldest();
    return decision;
  }

  /** After a policy was read: its rules may stand on other lines now, which its hash does not show. */
  clear(): void {
    this.#kept.clear();
  }

  #forgetOldest(): void {
    const [oldest] = this.#kept.keys();
    if (oldest !== undefined) this.#kept.delete(oldest);
  }
}
