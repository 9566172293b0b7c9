import type { OpenedList } from "../learn/additions.ts";

/** A kind of access that a person wants allowed. */
export type AllowKind = "write" | "read" | "net" | "command";

/** A line of the policy about the wanted access. `source`: `default.yaml:31`. */
export type Standing = {
  readonly list: string;
  readonly pattern: string;
  readonly source: string;
};

/** A policy's answer to a wish. */
export type Wish = {
  /** Items that grant the access; empty if a line already does, or if no item can. */
  readonly additions: readonly {
    readonly list: OpenedList;
    readonly value: string;
  }[];
  /** The line that already grants all of the access, and a sentence how. */
  readonly already?: { readonly source: string; readonly how: string };
  /** Lines that refuse all of the access, whatever is added. */
  readonly refusals: readonly Standing[];
  /** Lines that still refuse part of the access. */
  readonly partly: readonly Standing[];
  /** Sentences for a person to read before agreeing. */
  readonly notes: readonly string[];
};

/** Access that no line of a policy can grant. The sentence stands alone. */
export type Never = { readonly never: string };
