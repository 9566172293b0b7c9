/**
 * Takes what looks like a credential out of a command before it is recorded. On the path of a command, so it looks
 * at the first 64 KiB only, and every repetition has a bound: an attempt at each character then costs the same however
 * long the text is. What lies beyond is cut off, never kept unread.
 */
import { createHash } from "node:crypto";

const MAX_TEXT = 64 * 1024;

export type Redaction = { readonly kind: string; readonly place: string };
export type Redacted = { readonly text: string; readonly redacted: readonly Redaction[] };

/** Each pattern's first group, where it has one, stays; the rest is the secret. */
const SECRETS: readonly { readonly kind: string; readonly pattern: RegExp }[] = [
  {
    kind: "private-key",
    pattern:
      /()-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]{0,16384}?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g,
  },
  { kind: "aws-access-key", pattern: /()\b(?:AKIA|ASIA)[A-Z0-9]{16}\b/g },
  { kind: "github-token", pattern: /()\b(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{50,255})/g },
  { kind: "gitlab-token", pattern: /()\bglpat-[A-Za-z0-9_-]{20,}/g },
  { kind: "npm-token", pattern: /()\bnpm_[A-Za-z0-9]{36}\b/g },
  { kind: "slack-token", pattern: /()\bxox[abeoprs]-[A-Za-z0-9-]{10,}/g },
  { kind: "api-key", pattern: /()\bsk-[A-Za-z0-9_-]{20,}/g },
  { kind: "google-key", pattern: /()\bAIza[A-Za-z0-9_-]{35}/g },
  { kind: "scope-token", pattern: /()\bscp_[A-Za-z0-9_-]{43}/g },
  { kind: "jwt", pattern: /()\beyJ[A-Za-z0-9_-]{8,1024}\.eyJ[A-Za-z0-9_-]{8,4096}\.[A-Za-z0-9_-]{8,1024}/g },
  {
    kind: "authorization",
    pattern: /(\bauthorization\s{0,8}:\s{0,8}(?:bearer|basic|token)\s{1,8})[^\s'"]+/gi,
  },
  {
    kind: "url-password",
    pattern: /(\b[a-z][a-z0-9+.-]{0,31}:\/\/[^\s/:@'"]{0,128}:)[^\s/@'"]{1,512}(?=@)/gi,
  },
  {
    kind: "named-secret",
    pattern:
      /((?:^|[\s'";&|(?])(?:--?)?[A-Za-z0-9_-]{0,64}(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key)[A-Za-z0-9_-]{0,64}\s{0,8}[=:]\s{0,8}['"]?)[^\s'";&|)]+/gi,
  },
  {
    kind: "named-secret",
    pattern:
      /(\s--?(?:password|passwd|passphrase|secret|token|api-key|access-key)\s{1,8}['"]?)[^\s'"-][^\s'"]*/gi,
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

/** Stands between the words while they are looked at: white space to every pattern, and in no word of a program. */
const BETWEEN = "\u2028";

/** The same for the words of an argv, written as JSON. A secret behind its option (`--password`, `x`) is found too. */
export function redactWords(words: readonly string[], place: string): Redacted {
  const joined = words.map((word) => word.replaceAll(BETWEEN, " ")).join(BETWEEN);
  const { text, redacted } = redact(joined, place);
  return { text: JSON.stringify(text.split(BETWEEN)), redacted };
}
