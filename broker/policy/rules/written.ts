/** A policy with the file position of each part. */
import type { PolicyDocument } from "../../../schemas/generated/types.ts";

/** Keys and positions in lists, from the top of a document. */
export type DocumentPath = readonly (string | number)[];

/** Position of a policy's part in its file; line and column count from 1. */
export interface WrittenAt {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

/** A policy's document, merged with its base, and the file position of each part. */
export interface Written {
  readonly document: PolicyDocument;
  /** Position of a key or list item; an absent key has the position of the nearest key above. */
  readonly at: (path: DocumentPath) => WrittenAt;
}
