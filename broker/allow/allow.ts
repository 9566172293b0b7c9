/** Entry point: from a person's wish to the edited and tested policy file. Pure; the caller reads and writes files. */
import { isDeepStrictEqual } from "node:util";
import { withAdditions } from "../learn/additions.ts";
import { listsWhenAbsent, placeAdditions, withInsertions } from "../learn/place-additions.ts";
import { unifiedDiff } from "../learn/unified-diff.ts";
import { type CompiledPolicy, MAX_POLICY_BYTES, parsePolicy } from "../policy/index.ts";
import type { Wish } from "./wish.ts";

/** The edit that grants a wish. */
export type Edit = {
  /** The whole file after the edit. */
  readonly text: string;
  /** As a unified diff. */
  readonly patch: string;
};

export type EditOf = {
  readonly policy: CompiledPolicy;
  /** The current text of the policy's file. */
  readonly text: string;
  readonly wish: Wish;
  /** Paths of the file read and the file to write: for a shipped policy, the operator's copy is written. */
  readonly from: string;
  readonly to: string;
};

/**
 * Returns the edit, or why no edit is possible: the edited file must load, and differ in the wish alone. Comments and layout
 * stay. A file with an unknown layout is left alone.
 */
export function editFor({ policy, text, wish, from, to }: EditOf): Edit | { readonly wrong: string } {
  const items = wish.additions.map((addition) => ({ ...addition, note: "" }));
  const edited = withInsertions(text, placeAdditions(text, items, listsWhenAbsent(policy)));
  if (Buffer.byteLength(edited) > MAX_POLICY_BYTES)
    return {
      wrong: `the file would become longer than the ${MAX_POLICY_BYTES} bytes that a policy may have`,
    };
  const loaded = parsePolicy(edited, policy.source, undefined, () => policy.base ?? []);
  if ("problems" in loaded) return { wrong: `the file would not load with it: ${loaded.problems[0]?.text}` };
  if (!isDeepStrictEqual(loaded.ok.document, withAdditions(policy.document, wish.additions)))
    return {
      wrong: "cannot place the line: the layout of the file is not understood",
    };
  return { text: edited, patch: unifiedDiff(text, edited, from, to) };
}
