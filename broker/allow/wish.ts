import type { OpenedList } from "../learn/additions.ts";

/** What a person wants a policy to allow. */
export type AllowKind = "write" | "read" | "net" | "command";

/** A line of the policy that says something about what is wanted. `source`: `default.yaml:31`. */
export type Standing = {
  readonly list: string;
  readonly pattern: string;
  readonly source: string;
};

/** A wish as a policy answers it. */
export type Wish = {
  /** Items that give it; none where a line gives it already, or nothing can. */
  readonly additions: readonly {
    readonly list: OpenedList;
    readonly value: string;
  }[];
  /** The line that gives all of it already, and a sentence that says how. */
  readonly already?: { readonly source: string; readonly how: string };
  /** Lines that refuse all of it, whatever is added. */
  readonly refusals: readonly Standing[];
  /** Lines that go on refusing a part of it. */
  readonly partly: readonly Standing[];
  /** Sentences that a person reads before they say yes. */
  readonly notes: readonly string[];
};

/** What can never be given, by whatever line. The sentence stands alone. */
export type Never = { readonly never: string };
