/** Asks the host's resolver, or given DNS servers, for the addresses of a name. */
import { lookup, Resolver } from "node:dns/promises";
import { addressBytes } from "./names/address-bytes.ts";

/** Addresses, and the zone's TTL in seconds; undefined when unknown. */
export type Asked = { readonly addresses: readonly string[]; readonly ttl: number | undefined };

/** Asks for a name. Rejects with an error that has a `code` (`ENOTFOUND`, `ESERVFAIL`, …). */
export type Ask = (name: string, signal: AbortSignal) => Promise<Asked>;

/** RFC 8305 section 3, Resolution Delay: how long known addresses wait for the other family. */
const OTHER_FAMILY_MS = 50;

/** Milliseconds per try of a server; the caller bounds the total time. */
const TRY_MS = 1000;
const TRIES = 3;

/**
 * Asks getaddrinfo like every program of the host: with hosts file, nsswitch.conf and search domains. getaddrinfo
 * cannot be cancelled; the caller drops an answer after its signal.
 */
export async function askHost(name: string): Promise<Asked> {
  const found = await lookup(name, { all: true, order: "verbatim" });
  return { addresses: found.map(({ address }) => address), ttl: undefined };
}

/**
 * Returns a function that asks only these servers.
 *
 * @param servers valid for `isDnsServer`. Throws a TypeError at once for any other text.
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
 * Makes a resolver per question, for two reasons: cancelling must not cancel other questions, and in some versions of
 * Node 20 c-ares caches answers for an hour, per resolver (nodejs/node issue 57636).
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

/** ENODATA only says that the name has no addresses of this family, so the other family's error says more. */
function together(fourth: Family, sixth: Family): Asked {
  const records = [...sixth.records, ...fourth.records];
  if (records.length === 0) throw codeOf(fourth.error) === "ENODATA" ? sixth.error : fourth.error;
  return {
    addresses: records.map(({ address }) => address),
    ttl: Math.min(...records.map(({ ttl }) => ttl)),
  };
}

/** Returns an error's code; `EIO` without a code. */
export function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : "EIO";
}

const SERVER =
  /^(?:(?<v4>[\d.]+)(?::(?<port4>\d+))?|\[(?<bracketed>[^\]]*)\](?::(?<port6>\d+))?|(?<v6>[\da-fA-F:.]+))$/;

/**
 * Whether Node accepts the text as a DNS server: `192.0.2.1`, `192.0.2.1:53`, `2001:db8::1`, `[2001:db8::1]:53`, no
 * zone.
 *
 * Checked before `setServers`, since Node 20.20 ends the process by an assertion for port 0 and turns port 99999 into
 * 34463.
 */
export function isDnsServer(text: string): boolean {
  const { v4, port4, bracketed, port6, v6 } = SERVER.exec(text)?.groups ?? {};
  const port = port4 ?? port6;
  if (port !== undefined && !(port.length <= 5 && Number(port) >= 1 && Number(port) <= 65_535)) return false;
  const length = addressBytes(v4 ?? bracketed ?? v6 ?? "")?.length;
  return length === (v4 === undefined ? 16 : 4);
}
