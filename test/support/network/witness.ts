import { readFileSync } from "node:fs";
import type { Socket } from "node:net";
import type {
  Endpoint,
  Seen,
  SeenConnection,
  SeenDatagram,
  SeenQuestion,
  SeenRequest,
  Service,
} from "./messages.ts";

/** How much of a client's first words is kept. */
const FIRST_BYTES = 512;

/** Remembers what the servers of one internet saw. */
export class Witness {
  readonly questions: SeenQuestion[] = [];
  readonly datagrams: SeenDatagram[] = [];
  readonly #connections: WitnessedConnection[] = [];

  connection(service: Service, socket: Socket): WitnessedConnection {
    const connection = new WitnessedConnection(this.#connections.length, service, socket);
    this.#connections.push(connection);
    return connection;
  }

  seen(): Seen {
    return {
      connections: this.#connections.map((connection) => connection.seen()),
      datagrams: this.datagrams,
      questions: this.questions,
      echoes: echoesReceived(),
    };
  }
}

export class WitnessedConnection {
  readonly to: Endpoint;
  readonly requests: SeenRequest[] = [];
  sni: string | null = null;
  readonly #number: number;
  readonly #service: Service;
  readonly #socket: Socket;
  #first = Buffer.alloc(0);

  constructor(number: number, service: Service, socket: Socket) {
    this.#number = number;
    this.#service = service;
    this.#socket = socket;
    this.to = { address: plain(socket.localAddress ?? ""), port: socket.localPort ?? 0 };
  }

  /** Keeps the client's first bytes. */
  note(bytes: Buffer): void {
    if (this.#first.length < FIRST_BYTES)
      this.#first = Buffer.concat([this.#first, bytes]).subarray(0, FIRST_BYTES);
  }

  seen(): SeenConnection {
    return {
      number: this.#number,
      service: this.#service,
      to: this.to,
      received: this.#socket.bytesRead,
      first: this.#first.toString("latin1"),
      sni: this.sni,
      requests: this.requests,
      open: !this.#socket.destroyed,
    };
  }
}

/** An IPv4 address that a socket of both families shows as a mapped one. */
export function plain(address: string): string {
  return address.startsWith("::ffff:") && address.includes(".") ? address.slice("::ffff:".length) : address;
}

/** The kernel answers echo requests itself, so its counters (proc_net(5), RFC 2011's icmpInEchos) are the witness. */
function echoesReceived(): number {
  const [names, values] = readFileSync("/proc/self/net/snmp", "utf8")
    .split("\n")
    .filter((line) => line.startsWith("Icmp:"))
    .map((line) => line.split(" "));
  const four = Number(values?.[names?.indexOf("InEchos") ?? -1]);
  const six = /^Icmp6InEchos\s+(\d+)$/m.exec(readFileSync("/proc/self/net/snmp6", "utf8"))?.[1];
  if (Number.isNaN(four) || six === undefined) throw new Error("Cannot read the kernel's counters of ICMP");
  return four + Number(six);
}
