/**
 * Takes what looks like a credential out of a command before it is recorded. On the path of a command, so it looks
 * at the first 64 KiB only and at shapes that one pass of a regular expression can find; what lies beyond is
 * cut off, never kept unread.
 */
import { createHash } from "node:crypto";

const MAX_TEXT = 64 * 1024;

export type Redaction = { readonly kind: string; readonly place: string };
export type Redacted = { readonly text: string; readonly redacted: readonly Redaction[] };

/** Each pattern's first group, where it has one, stays; the rest is the secret. */
const SECRETS: readonly { readonly kind: string; readonly pattern: RegExp }[] = [
  {
    kind: "private-key",
    pattern: /()-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  },
  { kind: "aws-access-key", pattern: /()\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g },
  { kind: "github-token", pattern: /()\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})/g },
  { kind: "gitlab-token", pattern: /()\bglpat-[A-Za-z0-9_-]{20,}/g },
  { kind: "npm-token", pattern: /()\bnpm_[A-Za-z0-9]{36}\b/g },
  { kind: "slack-token", pattern: /()\bxox[abeoprs]-[A-Za-z0-9-]{10,}/g },
  { kind: "api-key", pattern: /()\bsk-[A-Za-z0-9_-]{20,}/g },
  { kind: "google-key", pattern: /()\bAIza[A-Za-z0-9_-]{35}/g },
  { kind: "jwt", pattern: /()\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}/g },
  { kind: "authorization", pattern: /(\bauthorization\s*:\s*(?:bearer|basic|token)\s+)[^\s'"]+/gi },
  { kind: "url-password", pattern: /(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@'"]*:)[^\s/@'"]+(?=@)/gi },
  {
    kind: "named-secret",
    pattern:
      /((?:^|[\s'";&|(?])(?:--?)?[A-Za-z0-9_-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key)[A-Za-z0-9_-]*\s*[=:]\s*['"]?)[^\s'";&|)]+/gi,
  },
  {
    kind: "named-secret",
    pattern:
      /(\s--?(?:password|passwd|passphrase|secret|token|api-key|access-key)\s+['"]?)[^\s'"-][^\s'"]*/gi,
  },
];

/** The text with each secret replaced by `[redacted:kind]`, and what was replaced. */
export function redact(text: string, place: string): Redacted {
  const redacted: Redaction[] = [];
  let rest = text;
  if (text.length > MAX_TEXT) {
    const digest = createHash("sha256").update(text).digest("hex");
    rest = `${text.slice(0, MAX_TEXT)}… [cut: ${text.length} characters, sha256:${digest}]`;
    redacted.push({ kind: "cut", place });
  }
  for (const { kind, pattern } of SECRETS) {
    rest = rest.replace(pattern, (_match, kept: string) => {
      redacted.push({ kind, place });
      return `${kept}[redacted:${kind}]`;
    });
  }
  return { text: rest, redacted };
}
