/** An error for people to mend, printed without a stack trace. */
export class SetUpError extends Error {}

/** @param {string} line */
export function say(line) {
  process.stdout.write(`set-up: ${line}\n`);
}
