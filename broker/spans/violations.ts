import type { WorldViolation } from "../../world/backend.ts";

/** A command can make a hundred thousand denied names; a line of its own for each took the broker half a minute. */
const MAX_LINES = 1000;

/** What one command did against the rules of its world: each with a line of its own, up to a bound, the rest counted. */
export class Violations {
  readonly #record: (violation: WorldViolation) => void;
  readonly #told: WorldViolation[] = [];
  readonly #rest = new Map<WorldViolation["kind"], number>();

  constructor(record: (violation: WorldViolation) => void) {
    this.#record = record;
  }

  /** Those that have a line of their own; a limit always has one. */
  get told(): readonly WorldViolation[] {
    return this.#told;
  }

  add(violation: WorldViolation): void {
    if (this.#told.length >= MAX_LINES && violation.kind !== "limit") {
      this.#rest.set(violation.kind, (this.#rest.get(violation.kind) ?? 0) + 1);
      return;
    }
    this.#told.push(violation);
    this.#record(violation);
  }

  /** Records how many had no line. */
  finish(): void {
    for (const [kind, count] of this.#rest) {
      const subject = `${count} more`;
      const message = `The command did so ${count} more times; only the first ${MAX_LINES} have a line of their own`;
      this.#record({ kind, subject, message });
    }
    this.#rest.clear();
  }
}
