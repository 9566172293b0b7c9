import { createTwoFilesPatch } from "diff";

/** How different two samples may be before only their difference is told: the search grows with the square of this. */
const MAX_EDITS = 1000;

/** The unified diff of two samples of one stream; undefined when they are alike, or too different to be shown. */
export function textDiff(recorded: string, now: string): string | undefined {
  if (recorded === now) return undefined;
  const patch = createTwoFilesPatch("recorded", "now", recorded, now, undefined, undefined, {
    context: 3,
    maxEditLength: MAX_EDITS,
    timeout: 50,
  });
  return patch?.replace(/^=+\n/, "");
}
