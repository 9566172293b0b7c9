/** The one spelling under which host names are compared. Pure. */
import { domainToASCII, domainToUnicode } from "node:url";

/** The name under which the host's own localhost can be allowed, by port. It is never looked up. */
export const HOST_INTERNAL = "host.internal";

/** RFC 1035, 2.3.4: 255 octets on the wire are 253 characters as text. */
const MAX_NAME = 253;
const MAX_LABEL = 63;

/** Letters outside ASCII may be more than what is left of them; punycode takes the square of a label's length. */
const MAX_TEXT = 512;

/**
 * Letters, digits, `-`, `_` and dots; beyond ASCII what IDNA makes of it. Without this, `domainToASCII` reads a `%2e` as a
 * dot and takes what stands before a `/` or `?` for the whole.
 */
const OTHER = /[^A-Za-z0-9._\u0080-\uffff-]/;

const LABEL = /^[a-z0-9_-]+$/;

/** A last label that makes the whole an IPv4 address or nothing (WHATWG URL, "ends in a number"): `1`, `0x7f`, `010`. */
const NUMBER = /^(?:[0-9]+|0x[0-9a-f]*)$/;

/**
 * A host name in lower case, in ASCII (UTS 46), without its last dot. Null for whatever is none: an address in any
 * spelling, an empty or too long label, a control character, a `xn--` that stands for no name.
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

/** RFC 6761, 6.3: `localhost`, and all below it. `name` as {@link hostName} has it. */
export function isLocalhost(name: string): boolean {
  return /(?:^|\.)localhost$/.test(name);
}

function isLabel(label: string): boolean {
  return label.length <= MAX_LABEL && LABEL.test(label) && (!label.startsWith("xn--") || hasLetters(label));
}

/** Node 20 has no ASCII for punycode that stands for nothing; Node 24 lets it through and has no letters for it. */
function hasLetters(label: string): boolean {
  return !["", "xn--"].includes(domainToUnicode(label).slice(0, "xn--".length));
}

/** Empty for what IDNA has no ASCII for. */
function inAscii(text: string): string {
  const lower = text.toLowerCase();
  return /[\u0080-\uffff]|(?:^|\.)xn--/.test(lower) ? domainToASCII(text) : lower;
}

/** A host name or an IPv4 address, with a port. */
export type HostPort = { readonly host: string; readonly port: number };
