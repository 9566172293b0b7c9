import { createHash } from "node:crypto";

/** `sha256:` and hex over the document's canonical JSON: keys sorted, no blanks. Layout and comments do not count. */
export function policyHash(document: object): string {
  return `sha256:${createHash("sha256").update(canonicalJson(document)).digest("hex")}`;
}

function canonicalJson(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return `{${entries.map(([key, part]) => `${JSON.stringify(key)}:${canonicalJson(part)}`).join(",")}}`;
}
