import { isIP } from "node:net";

/**
 * Returns the 4 or 16 bytes of an address (RFC 4291 section 2.2), so all spellings become equal. Null for other text:
 * names, octal, hexadecimal or shortened IPv4, ports, brackets, and addresses with a zone (RFC 4007), valid only on a
 * single link of a single host.
 */
export function addressBytes(text: string): Uint8Array | null {
  switch (isIP(text)) {
    case 4:
      return ipv4Bytes(text);
    case 6:
      return text.includes("%") ? null : ipv6Bytes(text);
    default:
      return null;
  }
}

/** Whether the first `bits` bits agree. */
export function startsWith(bytes: Uint8Array, prefix: Uint8Array, bits: number): boolean {
  if (bytes.length !== prefix.length) return false;
  const whole = bits >> 3;
  for (let at = 0; at < whole; at++) if (bytes[at] !== prefix[at]) return false;
  const rest = bits & 7;
  return rest === 0 || (((bytes[whole] ?? 0) ^ (prefix[whole] ?? 0)) & (0xff << (8 - rest)) & 0xff) === 0;
}

function ipv4Bytes(text: string): Uint8Array {
  return Uint8Array.from(text.split("."), Number);
}

/** Parses text accepted by `isIP`: at most one `::`, an IPv4 address only at the end. */
function ipv6Bytes(text: string): Uint8Array {
  const [head = "", tail] = text.split("::");
  const front = groupBytes(head);
  const back = tail === undefined ? [] : groupBytes(tail);
  const bytes = new Uint8Array(16);
  bytes.set(front, 0);
  bytes.set(back, 16 - back.length);
  return bytes;
}

function groupBytes(text: string): number[] {
  if (text === "") return [];
  return text.split(":").flatMap((group) => {
    if (group.includes(".")) return [...ipv4Bytes(group)];
    const number = Number.parseInt(group, 16);
    return [number >> 8, number & 255];
  });
}
