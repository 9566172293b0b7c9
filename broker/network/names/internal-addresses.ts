/**
 * Addresses that no name may resolve to: a name's owner chooses its addresses, and could reach services trusting this
 * host or its network. Checked for each dialled address, after resolution.
 *
 * Not `net.BlockList`: it names no range and misses an IPv4 address embedded in IPv6. Not ipaddr.js: it reads `0177.1`
 * as 127.0.0.1.
 */
import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";
import { addressBytes, startsWith } from "./address-bytes.ts";
import type { AddressRange } from "./ranges.ts";

type Interfaces = NodeJS.Dict<NetworkInterfaceInfo[]>;

type Range = { readonly prefix: Uint8Array; readonly bits: number; readonly name: string };

/**
 * Internal ranges by name; the first match names the address. From the IANA registries of special-purpose addresses, as
 * of RFC 9637.
 *
 * Left out on purpose, so dialled: documentation ranges (a mirror or a test may live there, no internal service does);
 * AS112 (192.31.196.0/24, 192.175.48.0/24, 2620:4f:8000::/48), AMT (192.52.193.0/24, 2001:3::/32) and ORCHIDv2
 * (2001:20::/28), all globally reachable. A network's own NAT64 prefix looks like any other address.
 */
const INTERNAL = ranges([
  // Metadata services: they give the machine's credentials to any client.
  ["169.254.169.254/32", "metadata", "AWS, Google Cloud, Azure, OpenStack and others"],
  ["169.254.170.2/32", "metadata", "AWS ECS task credentials"],
  ["169.254.170.23/32", "metadata", "AWS EKS Pod Identity"],
  ["169.254.42.42/32", "metadata", "Scaleway"],
  ["169.254.0.23/32", "metadata", "Tencent Cloud"],
  ["100.100.100.200/32", "metadata", "Alibaba Cloud, in the shared range"],
  ["192.0.0.192/32", "metadata", "Oracle Cloud (classic)"],
  ["168.63.129.16/32", "metadata", "Azure's wire server, in no special range"],
  ["fd00:ec2::254/128", "metadata", "AWS over IPv6"],
  ["fd00:ec2::23/128", "metadata", "AWS EKS Pod Identity over IPv6"],
  ["fd20:ce::254/128", "metadata", "Google Cloud over IPv6"],
  ["fd00:42::42/128", "metadata", "Scaleway over IPv6"],

  ["0.0.0.0/8", "unspecified", "RFC 791 section 3.2; Linux takes 0.0.0.0 for this host"],
  ["10.0.0.0/8", "private", "RFC 1918"],
  ["100.64.0.0/10", "shared", "RFC 6598, behind a carrier's NAT; some VPNs too"],
  ["127.0.0.0/8", "loopback", "RFC 1122 section 3.2.1.3"],
  ["169.254.0.0/16", "link-local", "RFC 3927"],
  ["172.16.0.0/12", "private", "RFC 1918"],
  ["192.0.0.0/24", "protocol assignments", "RFC 6890 section 2.1"],
  ["192.88.99.0/24", "6to4 relay", "RFC 7526: withdrawn, so any network may announce it"],
  ["192.168.0.0/16", "private", "RFC 1918"],
  ["198.18.0.0/15", "benchmarking", "RFC 2544; our own synthetic addresses"],
  ["224.0.0.0/4", "multicast", "RFC 5771"],
  ["255.255.255.255/32", "broadcast", "RFC 919"],
  ["240.0.0.0/4", "reserved", "RFC 1112 section 4; used inside some networks"],

  ["::/128", "unspecified", "RFC 4291 section 2.5.2; Linux takes :: for this host"],
  ["::1/128", "loopback", "RFC 4291 section 2.5.3"],
  ["64:ff9b:1::/48", "local translation", "RFC 8215: the network chooses where the IPv4 address is embedded"],
  ["100::/64", "discard", "RFC 6666"],
  ["100:0:0:1::/64", "dummy", "RFC 9780"],
  ["2001:1::/32", "protocol assignments", "RFC 7723, RFC 8155: the router's own services"],
  ["2001:2::/48", "benchmarking", "RFC 5180"],
  ["2001:10::/28", "reserved", "RFC 4843, withdrawn"],
  ["5f00::/16", "segment routing", "RFC 9602: inside one network"],
  ["fc00::/7", "unique local", "RFC 4193"],
  ["fe80::/10", "link-local", "RFC 4291 section 2.5.6"],
  ["fec0::/10", "site-local", "RFC 3879, withdrawn"],
  ["ff00::/8", "multicast", "RFC 4291 section 2.7"],
]);

/** Positions of IPv4 addresses embedded in IPv6; a host or router on the way may use the IPv4 address instead. */
const EMBEDDING = ranges([
  ["::ffff:0:0/96", "last", "mapped, RFC 4291 section 2.5.5.2: the socket layer dials IPv4"],
  ["::ffff:0:0:0/96", "last", "translated, RFC 2765 section 2.1"],
  ["::/96", "last", "compatible, RFC 4291 section 2.5.5.1"],
  ["64:ff9b::/96", "last", "NAT64, RFC 6052 section 2.1"],
  ["2002::/16", "6to4", "RFC 3056 section 2"],
  ["2001::/32", "teredo", "RFC 4380 section 4"],
]);

const DOCUMENTATION = ranges([
  ["192.0.2.0/24", "documentation", "RFC 5737"],
  ["198.51.100.0/24", "documentation", "RFC 5737"],
  ["203.0.113.0/24", "documentation", "RFC 5737"],
  ["2001:db8::/32", "documentation", "RFC 3849"],
  ["3fff::/20", "documentation", "RFC 9637"],
]);

/**
 * Names the internal range of an address for a person ("loopback", "private", …); null when dialling is allowed. Text
 * other than an address, or with a zone, is in the range "no address". An IPv4 address embedded in IPv6 counts as
 * itself.
 */
export function internalRange(address: string): string | null {
  const bytes = addressBytes(address);
  if (bytes === null) return "no address";
  for (const form of formsOf(bytes)) {
    const range = rangeOf(form, INTERNAL);
    if (range !== undefined) return range.name;
  }
  return null;
}

/** Names the first internal range overlapping an IPv4 range; null when none does. */
export function internalPart({ first, prefix }: AddressRange): string | null {
  const bytes = Uint8Array.from([24n, 16n, 8n, 0n], (shift) => Number((first >> shift) & 0xffn));
  const shared = INTERNAL.find(
    (range) =>
      range.prefix.length === bytes.length && startsWith(bytes, range.prefix, Math.min(prefix, range.bits)),
  );
  return shared?.name ?? null;
}

/** Milliseconds until the interfaces are read again: a read takes 0.2 ms, more with many interfaces. */
const BELIEVED_MS = 1000;

/** Caches the host's own addresses for the check of each connection; a new address counts within a second. */
export class OwnAddresses {
  readonly #read: typeof networkInterfaces;
  #own: readonly Uint8Array[] = [];
  #until = 0;

  constructor(read = networkInterfaces) {
    this.#read = read;
  }

  /**
   * Whether an address is currently the host's own. A service there belongs to the host, however public the address: a
   * firewall may close the service to the outside, but not to the host itself.
   *
   * Documentation addresses on the loopback interface do not count: no network assigns them, so a person put them there
   * to be reached. Other addresses on the loopback interface count: load balancers and anycast keep public addresses
   * there.
   */
  has(address: string): boolean {
    const now = performance.now();
    if (now >= this.#until) {
      this.#own = ownOf(this.#read());
      this.#until = now + BELIEVED_MS;
    }
    return isAmong(address, this.#own);
  }
}

function ownOf(interfaces: Interfaces): readonly Uint8Array[] {
  return Object.values(interfaces)
    .flatMap((entries) => entries ?? [])
    .flatMap(({ address, internal }) => {
      const own = addressBytes(address.replace(/%.*$/, ""));
      return own === null || (internal && rangeOf(own, DOCUMENTATION) !== undefined) ? [] : [own];
    });
}

function isAmong(address: string, own: readonly Uint8Array[]): boolean {
  const bytes = addressBytes(address);
  return (
    bytes !== null && formsOf(bytes).some((form) => own.some((one) => startsWith(form, one, one.length * 8)))
  );
}

/** Lists an address and its embedded IPv4 addresses: the prefix and the end may each hold one. */
function formsOf(bytes: Uint8Array): readonly Uint8Array[] {
  if (bytes.length === 4) return [bytes];
  return [bytes, ...inPrefix(bytes), ...(isIsatap(bytes) ? [bytes.subarray(12)] : [])];
}

function inPrefix(bytes: Uint8Array): readonly Uint8Array[] {
  switch (rangeOf(bytes, EMBEDDING)?.name) {
    case "last":
      return [bytes.subarray(12)];
    case "6to4":
      return [bytes.subarray(2, 6)];
    case "teredo":
      // The server, and the client's address with all bits inverted.
      return [bytes.subarray(4, 8), bytes.subarray(12).map((byte) => byte ^ 255)];
    default:
      return [];
  }
}

/** RFC 5214 section 6.1: an ISATAP interface identifier, after any prefix. */
function isIsatap(bytes: Uint8Array): boolean {
  return (bytes[8] === 0 || bytes[8] === 2) && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe;
}

function rangeOf(bytes: Uint8Array, among: readonly Range[]): Range | undefined {
  return among.find(({ prefix, bits }) => startsWith(bytes, prefix, bits));
}

/** @param rows the range in CIDR notation, its name, and its source or reason. */
function ranges(rows: readonly (readonly [cidr: string, name: string, why: string])[]): readonly Range[] {
  return rows.map(([cidr, name]) => {
    const [address = "", bits] = cidr.split("/");
    const prefix = addressBytes(address);
    if (prefix === null) throw new Error(`'${cidr}' is not a range of addresses`);
    return { prefix, bits: Number(bits), name };
  });
}
