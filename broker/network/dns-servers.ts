import { addressBytes } from "./names/address-bytes.ts";

const SERVER =
  /^(?:(?<v4>[\d.]+)(?::(?<port4>\d+))?|\[(?<bracketed>[^\]]*)\](?::(?<port6>\d+))?|(?<v6>[\da-fA-F:.]+))$/;

/**
 * Is it a DNS server as Node takes them: `192.0.2.1`, `192.0.2.1:53`, `2001:db8::1`, `[2001:db8::1]:53`, no zone?
 *
 * Asked before Node is: of a port of 0 its `setServers` ends the process by an assertion, of 99999 it makes 34463 (both seen
 * with Node 20.20).
 */
export function isDnsServer(text: string): boolean {
  const { v4, port4, bracketed, port6, v6 } = SERVER.exec(text)?.groups ?? {};
  const port = port4 ?? port6;
  if (port !== undefined && !(port.length <= 5 && Number(port) >= 1 && Number(port) <= 65_535)) return false;
  const length = addressBytes(v4 ?? bracketed ?? v6 ?? "")?.length;
  return length === (v4 === undefined ? 16 : 4);
}
