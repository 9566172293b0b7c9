/** What a world's DNS stub says to one message. Pure but for what it is handed. */
import {
  CODE,
  type Code,
  printableName,
  type Query,
  readQuery,
  writeReply,
  writeUnusable,
} from "./dns-message.ts";

export type StubAnswers = {
  /** The one spelling of a host name; null when the text is none. It gets letters, digits, `-`, `_` and dots. */
  spell(text: string): string | null;
  /** May this name, in its one spelling, be reached on any port? Asked for each question: rules change. */
  decide(name: string): boolean;
  /** The address that stands for an allowed name; null when there are none left. */
  addressOf(name: string): string | null;
  /**
   * A name was withheld. Each time: who records it must bound how much.
   *
   * @param name in its one spelling, or escaped as in master files when it is no host name.
   * @param type in words: `A`, `AAAA`, `TYPE1234`.
   */
  onRefused(name: string, type: string): void;
  /** An error of a socket, or one thrown above; the stub goes on. */
  onFault(error: unknown): void;
};

/**
 * In seconds. An address stands for its name as long as the world lives, so nothing goes stale; but a program that asks
 * again soon meets a changed policy as a clear answer instead of a connection that is cut. Zero would make each connection
 * of a program with a cache of its own ask twice.
 */
export const TTL_SECS = 5;

const TYPE_A = 1;
const CLASS_IN = 1;

/** TKEY to MAILA: requests to a server, no records (RFC 6895 section 3.1). ANY, 255, is a question. */
const META_TYPES = { first: 249, last: 254 } as const;

/** Names of our own addresses, asked for by ssh and others: nobody has them, and nothing is withheld. */
const OWN_REVERSE = /(?:^|\.)(?:(?:18|19)\.198|127)\.in-addr\.arpa$/;

type Answer = { readonly code: Code; readonly address?: string };

/** The reply to a message; undefined when none is due. Throws only what `answers` throws. */
export function replyTo(message: Buffer, answers: StubAnswers): Buffer | undefined {
  const query = readQuery(message);
  if (query === undefined) return undefined;
  if (query.kind === "unusable") return writeUnusable(query);
  const { code, address } = answerTo(query, answers);
  return writeReply(query, code, address === undefined ? undefined : { address, ttl: TTL_SECS });
}

function answerTo(query: Query, answers: StubAnswers): Answer {
  if (query.edns !== undefined && query.edns.version > 0) return { code: CODE.badVersion };
  if (query.class !== CLASS_IN) return { code: CODE.refused };
  if (query.type >= META_TYPES.first && query.type <= META_TYPES.last) return { code: CODE.refused };
  const name = query.name === null ? null : answers.spell(query.name);
  if (name === null) return withheld(printableName(query), query, answers);
  if (isLocalhost(name)) return query.type === TYPE_A ? found("127.0.0.1") : EMPTY;
  if (!answers.decide(name)) return isNobodys(name, answers) ? MISSING : withheld(name, query, answers);
  return query.type === TYPE_A ? given(answers.addressOf(name)) : EMPTY;
}

/**
 * Negative answers carry no SOA record, so that nobody keeps them (RFC 2308 section 5): what is refused now may be allowed
 * by the next command.
 */
const EMPTY: Answer = { code: CODE.noError };
const MISSING: Answer = { code: CODE.noSuchName };

function found(address: string): Answer {
  return { code: CODE.noError, address };
}

function given(address: string | null): Answer {
  return address === null ? { code: CODE.serverFailure } : found(address);
}

function withheld(name: string, { type }: Query, answers: StubAnswers): Answer {
  answers.onRefused(name, recordType(type));
  return MISSING;
}

/** RFC 6761 section 6.3: always this machine, here the world itself. */
function isLocalhost(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost");
}

/** `_http._tcp.` before an allowed name (RFC 8552) and reverses of our own addresses: missing, but not held back. */
function isNobodys(name: string, answers: StubAnswers): boolean {
  if (OWN_REVERSE.test(name)) return true;
  const host = name.replace(/^(?:_[^.]*\.)+/, "");
  return host !== name && answers.decide(host);
}

/** From the IANA registry of DNS resource record types: those that programs ask for. */
const NAMES: Readonly<Record<number, string>> = {
  1: "A",
  2: "NS",
  5: "CNAME",
  6: "SOA",
  10: "NULL",
  12: "PTR",
  15: "MX",
  16: "TXT",
  28: "AAAA",
  33: "SRV",
  35: "NAPTR",
  37: "CERT",
  43: "DS",
  44: "SSHFP",
  48: "DNSKEY",
  52: "TLSA",
  64: "SVCB",
  65: "HTTPS",
  249: "TKEY",
  250: "TSIG",
  251: "IXFR",
  252: "AXFR",
  255: "ANY",
  257: "CAA",
};

/** A record type in words; one without a name here as RFC 3597 section 5 writes it. */
function recordType(type: number): string {
  return NAMES[type] ?? `TYPE${type}`;
}
