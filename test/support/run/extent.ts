/**
 * Runs of a property: `npm test` makes a tenth of them, and `npm run test:slow` all (`AT_LENGTH` in test/lanes/choice.mjs).
 */
export function atLength(runs: number): number {
  return isNewcomersRun() ? Math.ceil(runs / 10) : runs;
}

/** Whether `npm test` runs, without arguments. */
export function isNewcomersRun(): boolean {
  return process.env["SUBSTRATE_TEST_EXTENT"] === "quick";
}
