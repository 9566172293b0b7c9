/**
 * Redacts text that looks like a credential before a command is recorded. Runs while the command waits, so reads only the first
 * 64 KiB, and every repetition has a bound: an attempt at each character then costs the same for any length of text. Text beyond
 * the limit is cut off, never recorded unread.
 */
import { createHash } from "node:crypto";
import type { DecisionRule } from "../../schemas/generated/types.ts";
import { isSecretName, TOKEN_KINDS } from "./kinds.ts";
import { commandRulesFor } from "./commands.ts";
import { RULES, type SecretRule } from "./rules.ts";

const MAX_TEXT = 64 * 1024;

export type Redaction = { readonly kind: string; readonly place: string };
export type Redacted = { readonly text: string; readonly redacted: readonly Redaction[] };

/** Secret values by the name of their variable; redacted anywhere in a text. */
export type KnownSecrets = ReadonlyMap<string, string>;

const NO_SECRETS: KnownSecrets = new Map();

/** Shorter values occur in commands as ordinary words. */
const SHORTEST_VALUE = 6;

/** All kinds in a single pass: a separate attempt per kind at each character would cost forty times as much. */
const TOKENS = new RegExp(`\\b(?:${TOKEN_KINDS.map(({ shape }) => shape).join("|")})`, "g");

/** Every token has such a run, and few commands do. */
const LONG_RUN = /[A-Za-z0-9_-]{11}/;

const KINDS = TOKEN_KINDS.map(({ kind, shape }) => ({ kind, pattern: new RegExp(`^(?:${shape})$`) }));

/** Returns the text with each secret replaced by `[redacted:kind]`, and a list of the kinds replaced. */
export function redact(text: string, place: string, known: KnownSecrets = NO_SECRETS): Redacted {
  const kinds = new Set<string>();
  const replaced = (kind: string): string => {
    kinds.add(kind);
    return `[redacted:${kind}]`;
  };
  // Before the cut, which could split a secret.
  const without = withoutValues(text, known, replaced);
  let rest = without ?? "";
  if (without === null || text.length > MAX_TEXT || rest.length > MAX_TEXT) {
    const digest = createHash("sha256").update(text).digest("hex");
    rest = `${rest.slice(0, MAX_TEXT)}… [cut: ${text.length} characters, sha256:${digest}]`;
    kinds.add("cut");
  }
  if (LONG_RUN.test(rest)) rest = rest.replace(TOKENS, (token) => replaced(kindOf(token)));
  const apply = ({ kind, pattern, isInnocent }: Omit<SecretRule, "hint">): void => {
    rest = rest.replace(pattern, (match, kept: string) => {
      const value = match.slice(kept.length);
      if (value.includes("[redacted:") || isInnocent?.(value, kept) === true) return match;
      return `${kept}${quoteOf(value)}${replaced(kind)}${endQuoteOf(value)}`;
    });
  };
  // Before the names: in `--secret dbPassword V`, a rule for the program finds the secret V.
  for (const rule of commandRulesFor(rest)) apply(rule);
  for (const rule of RULES) if (rule.hint.test(rest)) apply(rule);
  return { text: rest, redacted: [...kinds].map((kind) => ({ kind, place })) };
}

/** Most occurrences of known values in one text: no command has as many, and a text with more is not recorded at all. */
const MOST_FOUND = 4096;

type Found = { readonly at: number; readonly end: number; readonly name: string };

/**
 * Replaces the known values that begin in the first `MAX_TEXT` characters, and drops what follows. The text is read once: a caller
 * names the variables, and a name in a replacement can be the value of another. Null: too many.
 */
function withoutValues(text: string, known: KnownSecrets, replaced: (kind: string) => string): string | null {
  if (known.size === 0) return text.slice(0, MAX_TEXT);
  const found = foundIn(text, known);
  if (found === null) return null;
  const parts: string[] = [];
  let written = 0;
  for (const { at, end, name } of found) {
    // Of two values that overlap, neither leaves a remainder.
    if (at >= written) parts.push(text.slice(written, at), replaced(`env.${name}`));
    else if (end > written) replaced(`env.${name}`);
    written = Math.max(written, end);
  }
  return parts.join("") + text.slice(written, Math.max(written, MAX_TEXT));
}

/** Occurrences in order; of those that begin together, the longest first. Null: more than `MOST_FOUND`. */
function foundIn(text: string, known: KnownSecrets): readonly Found[] | null {
  let longest = 0;
  for (const { length } of known.values()) longest = Math.max(longest, length);
  const read = text.slice(0, MAX_TEXT + longest);
  const found: Found[] = [];
  for (const [name, value] of known) {
    for (let at = read.indexOf(value); at >= 0 && at < MAX_TEXT; at = read.indexOf(value, at + 1)) {
      if (found.length === MOST_FOUND) return null;
      found.push({ at, end: at + value.length, name });
    }
  }
  return found.sort((one, other) => one.at - other.at || other.end - one.end);
}

/** Joins the words for matching: white space to every pattern, and absent from the words of programs. */
const BETWEEN = "\u2028";

/** Whether a span records a non-secret word of an argv unchanged. */
export function isUnchangedBySpan(word: string): boolean {
  return !word.includes(BETWEEN);
}

/** Redacts the words of an argv; returns JSON. Also finds a secret behind its option (`--password`, `x`). */
export function redactWords(
  words: readonly string[],
  place: string,
  known: KnownSecrets = NO_SECRETS,
): Redacted {
  const joined = words.map((word) => word.replaceAll(BETWEEN, " ")).join(BETWEEN);
  const { text, redacted } = redact(joined, place, known);
  return { text: JSON.stringify(text.split(BETWEEN)), redacted };
}

/** Redacts a rule for a span's line: the matched fragment is part of the command. */
export function redactRule(rule: DecisionRule | null, known: KnownSecrets = NO_SECRETS): DecisionRule | null {
  return rule === null ? null : { ...rule, fragment: redact(rule.fragment, "rule", known).text };
}

/** Selects the values of variables with secret names. */
export function secretsIn(variables: Readonly<Record<string, string>>): KnownSecrets {
  let found: Map<string, string> | undefined;
  for (const [name, value] of Object.entries(variables)) {
    if (value.length < SHORTEST_VALUE || !isSecretName(name)) continue;
    found ??= new Map();
    found.set(name, value);
  }
  return found ?? NO_SECRETS;
}

function kindOf(token: string): string {
  return KINDS.find(({ pattern }) => pattern.test(token))?.kind ?? "token";
}

function quoteOf(value: string): string {
  return /^["']/.exec(value)?.[0] ?? "";
}

function endQuoteOf(value: string): string {
  const quote = quoteOf(value);
  return quote !== "" && value.length > 1 && value.endsWith(quote) ? quote : "";
}
