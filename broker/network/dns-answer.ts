/** Computes the reply of a world's DNS stub to one message. Pure, apart from the callbacks in `StubAnswers`. */
import { hostname } from "node:os";
import type { Asker } from "../../world/backend.ts";
import {
  CODE,
  type Code,
  printableName,
  type Query,
  readQuery,
  writeReply,
  writeUnusable,
} from "./dns-message.ts";

/** Who asks, and what the reply waits for. */
export type Asking = {
  readonly asker: Asker;
  /** Holds the reply back: the asker's socket stays open, so that its owner can be found. The promise must never reject. */
  readonly until: (settled: Promise<unknown>) => void;
};

/**
 * `found`: also a name that the host was not asked for, or has not answered for in time. `empty`: the name exists and has no address.
 * `unknown`: the host's resolver fails, and may answer later.
 */
export type Standing = "found" | "missing" | "empty" | "unknown";

export type StubAnswers = {
  /** Normalizes a host name; null for an invalid name. `text` has only letters, digits, `-`, `_` and dots. */
  spell(text: string): string | null;
  /** Whether the normalized name is allowed on any port. Called for each question, because rules change. */
  decide(name: string, asking: Asking): boolean;
  /** Returns the synthetic address of an allowed name; null when all are in use. */
  addressOf(name: string): string | null;
  /**
   * What the host says of an allowed name. A program that gets an address for a name nobody has goes on to connect, and
   * many try again for minutes. Must never reject.
   */
  standing(name: string, asking: Asking): Promise<Standing> | Standing;
  /**
   * Called for each withheld name. The callee must bound the records it makes.
   *
   * @param name normalized, or escaped as in master files when not a host name.
   * @param type in words: `A`, `AAAA`, `TYPE1234`.
   */
  onRefused(name: string, type: string, asking: Asking): void;
  /** Reports a socket error or an error thrown by the other callbacks; the stub goes on. */
  onFault(error: unknown): void;
};

/**
 * In seconds. A synthetic address is valid as long as the world, so no TTL makes it stale. With a short TTL, a program
 * soon asks again and learns of a policy change from the DNS answer, before a connection is cut. Zero would make a
 * program with its own cache ask twice per connection.
 */
export const TTL_SECS = 5;

const TYPE_A = 1;
const TYPE_AAAA = 28;
const CLASS_IN = 1;

/** TKEY to MAILA are requests to a server, not records (RFC 6895 section 3.1). ANY (255) is a question. */
const META_TYPES = { first: 249, last: 254 } as const;

/** Reverse names of synthetic and loopback addresses, asked for by ssh and others: missing, not withheld. */
const OWN_REVERSE = /(?:^|\.)(?:(?:18|19)\.198|127)\.in-addr\.arpa$/;

/** As in a world's /etc/hosts, which has no IPv6 address for it: programs ask for that one here. */
const OWN_NAME = hostname().toLowerCase();

type Answer = { readonly code: Code; readonly address?: string };

/** Computes the reply to a message; undefined when no reply is due. Throws and rejects only with errors of `answers`. */
export function replyTo(
  message: Buffer,
  answers: StubAnswers,
  asking: Asking,
): Buffer | Promise<Buffer> | undefined {
  const query = readQuery(message);
  if (query === undefined) return undefined;
  if (query.kind === "unusable") return writeUnusable(query);
  const answer = answerTo(query, answers, asking);
  return answer instanceof Promise ? answer.then((later) => written(query, later)) : written(query, answer);
}

function written(query: Query, { code, address }: Answer): Buffer {
  return writeReply(query, code, address === undefined ? undefined : { address, ttl: TTL_SECS });
}

function answerTo(query: Query, answers: StubAnswers, asking: Asking): Answer | Promise<Answer> {
  if (query.edns !== undefined && query.edns.version > 0) return { code: CODE.badVersion };
  if (query.class !== CLASS_IN) return { code: CODE.refused };
  if (query.type >= META_TYPES.first && query.type <= META_TYPES.last) return { code: CODE.refused };
  const name = query.name === null ? null : answers.spell(query.name);
  if (name === null) return withheld(printableName(query), query, answers, asking);
  if (isLocalhost(name) || name === OWN_NAME) return query.type === TYPE_A ? found("127.0.0.1") : EMPTY;
  if (!answers.decide(name, asking))
    return isNobodys(name, answers, asking) ? MISSING : withheld(name, query, answers, asking);
  if (query.type !== TYPE_A && query.type !== TYPE_AAAA) return EMPTY;
  const given = (standing: Standing): Answer => answerOf(standing, name, query, answers);
  const standing = answers.standing(name, asking);
  return standing instanceof Promise ? standing.then(given) : given(standing);
}

/** getaddrinfo asks for both families: a missing name is missing for each, else it is taken for one without addresses. */
function answerOf(standing: Standing, name: string, { type }: Query, answers: StubAnswers): Answer {
  if (standing === "missing") return MISSING;
  if (standing === "unknown") return FAILED;
  if (standing === "empty" || type !== TYPE_A) return EMPTY;
  const address = answers.addressOf(name);
  return address === null ? FAILED : found(address);
}

/**
 * Negative answers carry no SOA record, so clients do not cache them (RFC 2308 section 5): the next command may be
 * allowed to reach a name refused now.
 */
const EMPTY: Answer = { code: CODE.noError };
const MISSING: Answer = { code: CODE.noSuchName };
const FAILED: Answer = { code: CODE.serverFailure };

function found(address: string): Answer {
  return { code: CODE.noError, address };
}

function withheld(name: string, { type }: Query, answers: StubAnswers, asking: Asking): Answer {
  answers.onRefused(name, recordType(type), asking);
  return MISSING;
}

/** RFC 6761 section 6.3: always the local machine, here the world. */
function isLocalhost(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost");
}

/**
 * Whether a name is missing rather than withheld: `_http._tcp.` before an allowed name (RFC 8552), or a reverse name of
 * `OWN_REVERSE`.
 */
function isNobodys(name: string, answers: StubAnswers, asking: Asking): boolean {
  if (OWN_REVERSE.test(name)) return true;
  const host = name.replace(/^(?:_[^.]*\.)+/, "");
  return host !== name && answers.decide(host, asking);
}

/** The types that programs ask for, from the IANA registry of DNS resource record types. */
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

/** Names a record type; an unlisted type as in RFC 3597 section 5. */
function recordType(type: number): string {
  return NAMES[type] ?? `TYPE${type}`;
}
