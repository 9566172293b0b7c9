/** A policy with the place in its files of each part. */
import type { PolicyDocument } from "../../../schemas/generated/types.ts";

/** Keys and positions in lists, from the top of a document. */
export type DocumentPath = readonly (string | number)[];

/** A part of a policy in its file; line and column count from 1. */
export interface WrittenAt {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** What a policy says, with all that it starts from, and where each part of that is written. */
export interface Written {
  readonly document: PolicyDocument;
  /** Of a key or list item; of the nearest key above it when it is absent. */
  readonly at: (path: DocumentPath) => WrittenAt;
}
