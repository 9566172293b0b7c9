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

/** Returns the text with each secret replaced by `[redacted:kind]`, and a list of the replacements. */
export function redact(text: string, place: string, known: KnownSecrets = NO_SECRETS): Redacted {
  const redacted: Redaction[] = [];
  let rest = text;
  const replaced = (kind: string): string => {
    redacted.push({ kind, place });
    return `[redacted:${kind}]`;
  };
  // Before the cut, which could split a secret.
  for (const [name, value] of longestFirst(known)) {
    if (rest.includes(value)) rest = rest.replaceAll(value, () => replaced(`env.${name}`));
  }
  if (rest.length > MAX_TEXT) {
    const digest = createHash("sha256").update(text).digest("hex");
    rest = `${rest.slice(0, MAX_TEXT)}… [cut: ${text.length} characters, sha256:${digest}]`;
    redacted.push({ kind: "cut", place });
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
  return { text: rest, redacted };
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

/** Sorts by length: replacing a shorter value first could leave the rest of a longer value. */
function longestFirst(known: KnownSecrets): Iterable<readonly [name: string, value: string]> {
  return known.size < 2 ? known : [...known].sort(([, one], [, other]) => other.length - one.length);
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
