import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";

/** Returns the unified diff of a file and its edited text, for `patch`; empty for equal texts. `to`: label of a copy. Pure. */
export function unifiedDiff(before: string, after: string, label: string, to = label): string {
  if (before === after) return "";
  return createTwoFilesPatch(label, to, before, after, undefined, undefined, {
    context: 3,
    headerOptions: FILE_HEADERS_ONLY,
  });
}
