/** Reads bytes as what a client says first that dialled `NAME`. */
import { domainToASCII } from "node:url";
import { type FirstBytes, FirstBytesReader } from "../../../broker/network/first-bytes.ts";

export const NAME = "good.example";

/** One spelling for each host name, as far as these tests need it. */
export function spell(text: string): string | null {
  if (/[^A-Za-z0-9._\u0080-\uffff-]/.test(text) || /(?:^|\.)\d+\.?$/.test(text)) return null;
  const ascii = domainToASCII(text.replace(/\.$/, ""));
  return ascii === "" ? null : ascii;
}

export function read(bytes: Uint8Array, name = NAME): FirstBytes {
  return new FirstBytesReader(name, spell).push(bytes);
}

export function readByBytes(bytes: Uint8Array): FirstBytes {
  const reader = new FirstBytesReader(NAME, spell);
  for (const byte of bytes) reader.push(Uint8Array.of(byte));
  return reader.answer;
}

export function ended(text: string): FirstBytes {
  const reader = new FirstBytesReader(NAME, spell);
  reader.push(Buffer.from(text, "latin1"));
  return reader.end();
}

export function tls(named: string): FirstBytes {
  return { kind: "disagrees", protocol: "tls", named };
}
