/** Where the addresses of a name come from on the host. */
import { lookup, Resolver } from "node:dns/promises";
import { addressBytes } from "./names/address-bytes.ts";

/** Addresses, and how long they hold by what the zone says, in seconds; undefined when nobody said. */
export type Asked = { readonly addresses: readonly string[]; readonly ttl: number | undefined };

/** Rejects with an error that has a `code` (`ENOTFOUND`, `ESERVFAIL`, …). */
export type Ask = (name: string, signal: AbortSignal) => Promise<Asked>;

/** RFC 8305 section 3, Resolution Delay: how long the other family may keep addresses that are known waiting. */
const OTHER_FAMILY_MS = 50;

/** For each try of a server, in milliseconds; what all of it may take is limited by who asks. */
const TRY_MS = 1000;
const TRIES = 3;

/**
 * As every program of the host does: getaddrinfo, with its hosts file, nsswitch.conf and search domains. It cannot be
 * called back: an answer that comes after the signal is thrown away.
 */
export async function askHost(name: string): Promise<Asked> {
  const found = await lookup(name, { all: true, order: "verbatim" });
  return { addresses: found.map(({ address }) => address), ttl: undefined };
}

/**
 * Asks these servers and nobody else.
 *
 * @param servers as `isDnsServer` has them. Throws a TypeError at once for anything else.
 */
export function askServers(servers: readonly string[]): Ask {
  const stray = servers.find((server) => !isDnsServer(server));
  if (stray !== undefined)
    throw new TypeError(
      `Cannot ask '${stray}' for names: a DNS server is an address, or an address and a port`,
    );
  return async (name, signal) => await askOnce(servers, name, signal);
}

type Record = { readonly address: string; readonly ttl: number };
type Family = { readonly records: readonly Record[]; readonly error: unknown };

/**
 * A resolver for each question: its questions can be cancelled without others', and c-ares keeps answers for an hour in
 * some versions of Node 20 (nodejs/node issue 57636), but not beyond a resolver.
 */
async function askOnce(servers: readonly string[], name: string, signal: AbortSignal): Promise<Asked> {
  const resolver = new Resolver({ timeout: TRY_MS, tries: TRIES });
  resolver.setServers(servers);
  const cancel = () => resolver.cancel();
  signal.addEventListener("abort", cancel, { once: true });
  try {
    const sixth = settled(resolver.resolve6(name, { ttl: true }));
    const fourth = await settled(resolver.resolve4(name, { ttl: true }));
    const other = await (fourth.records.length > 0 ? atMost(OTHER_FAMILY_MS, sixth) : sixth);
    return together(fourth, other);
  } finally {
    signal.removeEventListener("abort", cancel);
    resolver.cancel();
  }
}

async function settled(question: Promise<readonly Record[]>): Promise<Family> {
  try {
    return { records: await question, error: undefined };
  } catch (error) {
    return { records: [], error };
  }
}

async function atMost(ms: number, family: Promise<Family>): Promise<Family> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Family>((resolve) => {
    timer = setTimeout(resolve, ms, { records: [], error: undefined });
  });
  try {
    return await Promise.race([family, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** ENODATA says that the name exists without such addresses: what went wrong with the other family says more. */
function together(fourth: Family, sixth: Family): Asked {
  const records = [...sixth.records, ...fourth.records];
  if (records.length === 0) throw codeOf(fourth.error) === "ENODATA" ? sixth.error : fourth.error;
  return {
    addresses: records.map(({ address }) => address),
    ttl: Math.min(...records.map(({ ttl }) => ttl)),
  };
}

/** The name of what went wrong. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "EIO";
}

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
