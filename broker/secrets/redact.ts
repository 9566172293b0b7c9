/**
 * Takes what looks like a credential out of a command before it is recorded. On the path of a command, so it looks
 * at the first 64 KiB only, and every repetition has a bound: an attempt at each character then costs the same however
 * long the text is. What lies beyond is cut off, never kept unread.
 */
import { createHash } from "node:crypto";
import type { DecisionRule } from "../../schemas/generated/types.ts";
import { isSecretName, TOKEN_KINDS } from "./kinds.ts";
import { commandRulesFor } from "./commands.ts";
import { RULES, type SecretRule } from "./rules.ts";

const MAX_TEXT = 64 * 1024;

export type Redaction = { readonly kind: string; readonly place: string };
export type Redacted = { readonly text: string; readonly redacted: readonly Redaction[] };

/** What is taken out wherever it stands, by the name that says it is secret. */
export type KnownSecrets = ReadonlyMap<string, string>;

const NO_SECRETS: KnownSecrets = new Map();

/** Shorter values are words that stand in commands for other reasons. */
const SHORTEST_VALUE = 6;

/** All of them in one pass: an attempt at each character for each kind would cost forty times as much. */
const TOKENS = new RegExp(`\\b(?:${TOKEN_KINDS.map(({ shape }) => shape).join("|")})`, "g");

/** No token is without one, and few commands are with one. */
const LONG_RUN = /[A-Za-z0-9_-]{11}/;

const KINDS = TOKEN_KINDS.map(({ kind, shape }) => ({ kind, pattern: new RegExp(`^(?:${shape})$`) }));

/** The text with each secret replaced by `[redacted:kind]`, and what was replaced. */
export function redact(text: string, place: string, known: KnownSecrets = NO_SECRETS): Redacted {
  const redacted: Redaction[] = [];
  let rest = text;
  const replaced = (kind: string): string => {
    redacted.push({ kind, place });
    return `[redacted:${kind}]`;
  };
  // Before the cut: the end of what is kept may be the beginning of one.
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
  // Before the names: `--secret dbPassword V` is the secret of a program that is known.
  for (const rule of commandRulesFor(rest)) apply(rule);
  for (const rule of RULES) if (rule.hint.test(rest)) apply(rule);
  return { text: rest, redacted };
}

/** Stands between the words while they are looked at: white space to every pattern, and in no word of a program. */
const BETWEEN = "\u2028";

/** Whether a word of an argv stands in its span as it was given, where it is no secret. */
export function isUnchangedBySpan(word: string): boolean {
  return !word.includes(BETWEEN);
}

/** The same for the words of an argv, written as JSON. A secret behind its option (`--password`, `x`) is found too. */
export function redactWords(
  words: readonly string[],
  place: string,
  known: KnownSecrets = NO_SECRETS,
): Redacted {
  const joined = words.map((word) => word.replaceAll(BETWEEN, " ")).join(BETWEEN);
  const { text, redacted } = redact(joined, place, known);
  return { text: JSON.stringify(text.split(BETWEEN)), redacted };
}

/** A rule as a line has it: the fragment that it met is a part of the command. */
export function redactRule(rule: DecisionRule | null, known: KnownSecrets = NO_SECRETS): DecisionRule | null {
  return rule === null ? null : { ...rule, fragment: redact(rule.fragment, "rule", known).text };
}

/**
 * A text of any length, off the path of a command: a sample of an output. It is looked at in pieces that end where a line
 * does, and never within the lines of a private key. A line of more than 64 KiB is cut where it has a blank, if it has one.
 */
export function redactSample(text: string, place: string, known: KnownSecrets = NO_SECRETS): Redacted {
  const pieces: string[] = [];
  const redacted: Redaction[] = [];
  for (let from = 0; from < text.length; ) {
    const to = pieceEnd(text, from);
    const piece = redact(text.slice(from, to), place, known);
    pieces.push(piece.text);
    redacted.push(...piece.redacted);
    from = to;
  }
  return { text: pieces.join(""), redacted };
}

/** The values of variables whose names say that they are secret. */
export function secretsIn(variables: Readonly<Record<string, string>>): KnownSecrets {
  let found: Map<string, string> | undefined;
  for (const [name, value] of Object.entries(variables)) {
    if (value.length < SHORTEST_VALUE || !isSecretName(name)) continue;
    found ??= new Map();
    found.set(name, value);
  }
  return found ?? NO_SECRETS;
}

/** One value may be part of another: the shorter one first would leave the rest of the longer. */
function longestFirst(known: KnownSecrets): Iterable<readonly [name: string, value: string]> {
  return known.size < 2 ? known : [...known].sort(([, one], [, other]) => other.length - one.length);
}

/** What `redact` looks at whole. */
function pieceEnd(text: string, from: number): number {
  const most = from + MAX_TEXT;
  if (text.length <= most) return text.length;
  const line = text.lastIndexOf("\n", most - 1);
  const blank = line >= from ? line : text.lastIndexOf(" ", most - 1);
  const end = blank >= from ? blank + 1 : most;
  const key = text.lastIndexOf("-----BEGIN ", end);
  const isOpen = key > from && text.indexOf("-----END ", key) >= end;
  return isOpen ? key : end;
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
