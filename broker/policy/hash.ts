import { createHash } from "node:crypto";

/** Canonical JSON of the objects in a document: an edit leaves most of them as they are. */
export type CanonicalTexts = WeakMap<object, string>;

/** `sha256:` and hex over the document's canonical JSON: keys sorted, no blanks. Layout and comments do not count. */
export function policyHash(document: object, known: CanonicalTexts): string {
  return `sha256:${createHash("sha256").update(canonicalJson(document, known)).digest("hex")}`;
}

export function canonicalJson(value: unknown, known: CanonicalTexts): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const text = known.get(value);
  if (text !== undefined) return text;
  const made = !Array.isArray(value)
    ? objectJson(value, known)
    : value.every((part) => typeof part !== "object")
      ? JSON.stringify(value)
      : `[${value.map((part) => canonicalJson(part, known)).join(",")}]`;
  known.set(value, made);
  return made;
}

function objectJson(value: object, known: CanonicalTexts): string {
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  const parts = entries.map(([key, part]) => `${JSON.stringify(key)}:${canonicalJson(part, known)}`);
  return `{${parts.join(",")}}`;
}
