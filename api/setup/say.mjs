/** What a person can mend: printed without a stack trace. */
export class SetUpError extends Error {}

/** @param {string} line */
export function say(line) {
  process.stdout.write(`set-up: ${line}\n`);
}
