import { uuidv7 } from "uuidv7";

/** Makes an id from its kind and a UUIDv7, so that ids sort by creation time. */
export function newId(kind: "spn" | "wld" | "ses" | "apr"): string {
  return `${kind}_${uuidv7()}`;
}
