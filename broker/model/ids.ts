import { uuidv7 } from "uuidv7";

/** A new id: its kind and a UUIDv7, so that ids sort by the time they were made. */
export function newId(kind: "spn" | "wld" | "ses" | "apr"): string {
  return `${kind}_${uuidv7()}`;
}
