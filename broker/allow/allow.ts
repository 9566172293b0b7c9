/** The spine: from what a person wants allowed to the policy's file with it, tried. Pure; files are the caller's. */
import { isDeepStrictEqual } from "node:util";
import { withAdditions } from "../learn/additions.ts";
import { listsWhenAbsent, placeAdditions, withInsertions } from "../learn/place-additions.ts";
import { unifiedDiff } from "../learn/unified-diff.ts";
import { type CompiledPolicy, MAX_POLICY_BYTES, parsePolicy } from "../policy/index.ts";
import type { Wish } from "./wish.ts";

/** The edit that grants a wish. */
export type Edit = {
  /** The whole file with it. */
  readonly text: string;
  /** As a unified diff. */
  readonly patch: string;
};

export type EditOf = {
  readonly policy: CompiledPolicy;
  /** The policy's file as it is now. */
  readonly text: string;
  readonly wish: Wish;
  /** The file that is read, and the one that is to be written: of a shipped policy, the operator's copy. */
  readonly from: string;
  readonly to: string;
};

/**
 * The edit, or why there is none: the file with it must load, and say nothing else that is new. Comments and layout stay. A
 * layout that is not understood is left alone.
 */
export function editFor({ policy, text, wish, from, to }: EditOf): Edit | { readonly wrong: string } {
  const items = wish.additions.map((addition) => ({ ...addition, note: "" }));
  const edited = withInsertions(text, placeAdditions(text, items, listsWhenAbsent(policy)));
  if (Buffer.byteLength(edited) > MAX_POLICY_BYTES)
    return {
      wrong: `with it the file would be longer than the ${MAX_POLICY_BYTES} bytes that a policy may have`,
    };
  const loaded = parsePolicy(edited, policy.source, undefined, () => policy.base ?? []);
  if ("problems" in loaded) return { wrong: `it would not load with it: ${loaded.problems[0]?.text}` };
  if (!isDeepStrictEqual(loaded.ok.document, withAdditions(policy.document, wish.additions)))
    return {
      wrong: "the layout of the file is not understood, so the line would land in the wrong place",
    };
  return { text: edited, patch: unifiedDiff(text, edited, from, to) };
}
