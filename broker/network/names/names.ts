/** Normalizes host names for comparison. Pure. */
import { domainToASCII, domainToUnicode } from "node:url";

/** The name that allows the host's own localhost, by port. Never resolved. */
export const HOST_INTERNAL = "host.internal";

/** RFC 1035, 2.3.4: 255 octets on the wire are 253 characters of text. */
const MAX_NAME = 253;
const MAX_LABEL = 63;

/** Unicode text may be longer than its ASCII form; punycode takes time quadratic in a label's length. */
const MAX_TEXT = 512;

/**
 * Characters other than letters, digits, `-`, `_`, dots, and non-ASCII, which IDNA handles. Without this check,
 * `domainToASCII` reads `%2e` as a dot and cuts the text at a `/` or `?`.
 */
const OTHER = /[^A-Za-z0-9._\u0080-\uffff-]/;

const LABEL = /^[a-z0-9_-]+$/;

/**
 * A last label by which the whole text is an IPv4 address or invalid (WHATWG URL, "ends in a number"): `1`, `0x7f`,
 * `010`.
 */
const NUMBER = /^(?:[0-9]+|0x[0-9a-f]*)$/;

/**
 * Normalizes a host name: lower case, ASCII (UTS 46), no trailing dot. Null for any other text: an address in any
 * spelling, an empty or too long label, a control character, an invalid `xn--` label.
 */
export function hostName(text: string): string | null {
  if (text.length > MAX_TEXT || OTHER.test(text)) return null;
  const ascii = inAscii(text);
  const name = ascii.endsWith(".") ? ascii.slice(0, -1) : ascii;
  if (name.length > MAX_NAME) return null;
  const labels = name.split(".");
  if (!labels.every(isLabel)) return null;
  return NUMBER.test(labels.at(-1) ?? "") ? null : name;
}

/** Whether a name is `localhost` or below (RFC 6761, 6.3). `name` as returned by {@link hostName}. */
export function isLocalhost(name: string): boolean {
  return /(?:^|\.)localhost$/.test(name);
}

function isLabel(label: string): boolean {
  return label.length <= MAX_LABEL && LABEL.test(label) && (!label.startsWith("xn--") || hasLetters(label));
}

/**
 * Whether punycode decodes to letters: Node 20 rejects invalid punycode, while Node 24 passes it and returns no
 * letters.
 */
function hasLetters(label: string): boolean {
  return !["", "xn--"].includes(domainToUnicode(label).slice(0, "xn--".length));
}

/** Converts to ASCII; empty for text that IDNA rejects. */
function inAscii(text: string): string {
  const lower = text.toLowerCase();
  return /[\u0080-\uffff]|(?:^|\.)xn--/.test(lower) ? domainToASCII(text) : lower;
}

/** A host name or an IPv4 address, with a port. */
export type HostPort = { readonly host: string; readonly port: number };
