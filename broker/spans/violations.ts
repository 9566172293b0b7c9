import type { WorldViolation } from "../../world/backend.ts";

/**
 * Bound on lines: a command can create a hundred thousand denied names, and a line for each kept the broker busy for half a
 * minute.
 */
const MAX_LINES = 1000;

/** Violations of one command against its world's rules: a line each up to a bound, the rest counted. */
export class Violations {
  readonly #record: (violation: WorldViolation) => void;
  readonly #told: WorldViolation[] = [];
  readonly #rest = new Map<WorldViolation["kind"], number>();

  constructor(record: (violation: WorldViolation) => void) {
    this.#record = record;
  }

  /** Violations with their own line; a limit always gets a line. */
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

  /** Records the counts of violations without a line. */
  finish(): void {
    for (const [kind, count] of this.#rest) {
      const subject = `${count} more`;
      const message = `The command did so ${count} more times; only the first ${MAX_LINES} are recorded one by one`;
      this.#record({ kind, subject, message });
    }
    this.#rest.clear();
  }
}
