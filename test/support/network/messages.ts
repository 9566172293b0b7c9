/** What the tests' internet is told and what it tells, over the IPC channel of its process. */

/** What a name of the zone answers. Times to live are seconds, 60 when absent. */
export type ZoneEntry =
  | {
      readonly addresses: readonly string[];
      readonly ttl?: number;
      /** Over UDP there is only an empty answer that says it was cut (TC; RFC 1035, 4.2.1). */
      readonly cut?: true;
    }
  /**
   * Each question for one type takes the next list of addresses. Afterwards they come again, or the last one stays.
   * So a name rotates, or rebinds.
   */
  | {
      readonly turns: readonly (readonly string[])[];
      readonly then: "again" | "stay";
      readonly ttl?: number;
    }
  | { readonly alias: string; readonly ttl?: number }
  | { readonly rcode: "SERVFAIL" | "REFUSED" }
  /** No answer ever. */
  | { readonly silent: true };

/** By name, in lower case and without a trailing dot; `*.` stands for any depth below. All others are NXDOMAIN. */
export type Zone = Readonly<Record<string, ZoneEntry>>;

export type Endpoint = { readonly address: string; readonly port: number };

export type Service = "http" | "tls" | "ssh" | "sink" | "source" | "echo" | "dns";

export type SeenRequest = {
  readonly method: string;
  readonly path: string;
  /** The Host header, or `:authority` of HTTP/2. */
  readonly host: string;
  readonly version: string;
};

/** One TCP connection as its server saw it. Bytes are those on the wire, TLS included. */
export type SeenConnection = {
  readonly number: number;
  readonly service: Service;
  /** The address that was dialled: every address leads here. */
  readonly to: Endpoint;
  readonly received: number;
  /** The first bytes of the client, at most 512, as latin1. */
  readonly first: string;
  /** The name in the TLS handshake; null without TLS, without a name, or when the handshake failed. */
  readonly sni: string | null;
  readonly requests: readonly SeenRequest[];
  readonly open: boolean;
};

export type SeenDatagram = { readonly to: Endpoint; readonly bytes: number };

export type SeenQuestion = {
  /** As it was spelled; a byte that is no printable ASCII, and a dot within a label, as `\DDD` (RFC 1035, 5.1). */
  readonly name: string;
  /** `none` for what was no question: its name is then how long it was. */
  readonly type: string;
  readonly over: "udp" | "tcp" | "tls" | "https";
};

export type Seen = {
  readonly connections: readonly SeenConnection[];
  readonly datagrams: readonly SeenDatagram[];
  readonly questions: readonly SeenQuestion[];
  /** ICMP and ICMPv6 echo requests that the namespace received. */
  readonly echoes: number;
};

export type Order =
  | {
      readonly do: "serve";
      readonly zone: Zone;
      readonly certificate: string;
      readonly key: string;
      /** The folder of everything that this internet made: its process removes it when it ends. */
      readonly folder: string;
      /** The folder of the git repositories. */
      readonly repositories: string;
      /** The folder of the pages that a test gives it, or null. */
      readonly pages: string | null;
    }
  | { readonly do: "zone"; readonly zone: Zone }
  | { readonly do: "seen" };

export type Request = Order & { readonly id: number };

export type Reply =
  | { readonly id: number; readonly seen: Seen }
  | { readonly id: number; readonly failed: string };

/** Where which service listens, on every address of the namespace. */
export const PORTS = {
  http: [80, 8080],
  tls: [443, 853, 8443],
  ssh: [22],
  sink: [9000],
  source: [9001],
  /** As a database on the host would. */
  echo: [5432],
  dns: [53, 5353],
} as const satisfies Record<Service, readonly number[]>;

/** UDP ports with nothing but a witness: HTTP/3, and any other. */
export const DATAGRAM_PORTS = [443, 4433] as const;
