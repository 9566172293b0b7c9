/** Address ranges in CIDR notation (RFC 4632, RFC 4291). Pure. */
import { isIPv4, isIPv6 } from "node:net";

export type Address = {
  readonly family: 4 | 6;
  /** The address as a number of 32 or 128 bits. */
  readonly value: bigint;
};

export type AddressRange = {
  readonly family: 4 | 6;
  /** The lowest address of the range. */
  readonly first: bigint;
  /** Number of fixed bits: 0 to 32, or 0 to 128. */
  readonly prefix: number;
};

/** IPv4 in IPv6 (RFC 4291, 2.5.5.2): `::ffff:0:0/96`. */
const MAPPED = 0xffffn;

const BITS = { 4: 32, 6: 128 } as const;

/** Parses a dotted-decimal IPv4 address, or IPv6 without a zone; a mapped address becomes its IPv4 address. */
export function readAddress(text: string): Address | null {
  if (isIPv4(text)) return { family: 4, value: ipv4(text) };
  if (!isIPv6(text) || text.includes("%")) return null;
  const value = ipv6(text);
  return value >> 32n === MAPPED ? { family: 4, value: value & 0xffffffffn } : { family: 6, value };
}

/**
 * Parses `address/prefix` or a single address. Bits beyond the prefix are ignored: `10.1.2.3/8` is `10.0.0.0/8`. Null
 * for other text, including a range of mapped addresses wider than all of IPv4.
 */
export function readRange(text: string): AddressRange | null {
  const [, written = "", bits] = /^([^/]+)(?:\/([0-9]{1,3}))?$/.exec(text) ?? [];
  const address = readAddress(written);
  if (address === null) return null;
  const width = isIPv4(written) ? 32 : 128;
  const given = bits === undefined ? width : Number(bits);
  const prefix = given - (width - BITS[address.family]);
  if (given > width || prefix < 0) return null;
  const free = BigInt(BITS[address.family] - prefix);
  return { family: address.family, first: (address.value >> free) << free, prefix };
}

export function contains(range: AddressRange, address: Address): boolean {
  if (range.family !== address.family) return false;
  const free = BigInt(BITS[range.family] - range.prefix);
  return address.value >> free === range.first >> free;
}

/** Whether every address of `range` lies in `wide`. */
export function isWithin(range: AddressRange, wide: AddressRange): boolean {
  return wide.prefix <= range.prefix && contains(wide, { family: range.family, value: range.first });
}

/** Prints an IPv4 range as `10.0.0.0/8`. */
export function rangeText({ first, prefix }: AddressRange): string {
  const bytes = [24n, 16n, 8n, 0n].map((shift) => String((first >> shift) & 0xffn));
  return `${bytes.join(".")}/${prefix}`;
}

function ipv4(text: string): bigint {
  return text.split(".").reduce((sum, byte) => sum * 256n + BigInt(byte), 0n);
}

/** Parses text known to be IPv6: at most one `::`, possibly an IPv4 address at the end. */
function ipv6(text: string): bigint {
  const groups = (part: string): readonly bigint[] =>
    part === ""
      ? []
      : part.split(":").flatMap((group) => (group.includes(".") ? halves(group) : [hex(group)]));
  const [head = "", tail] = text.split("::");
  const before = groups(head);
  const after = groups(tail ?? "");
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0n);
  return [...before, ...zeros, ...after].reduce((sum, group) => (sum << 16n) | group, 0n);
}

function hex(group: string): bigint {
  return BigInt(`0x${group}`);
}

function halves(dotted: string): readonly bigint[] {
  const value = ipv4(dotted);
  return [value >> 16n, value & 0xffffn];
}
