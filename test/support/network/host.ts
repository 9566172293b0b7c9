/** The program that runs in the namespace of the tests' internet. It serves until its channel closes. */
import { execFile } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { createServer, type Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { promisify } from "node:util";
import { DnsServer } from "./dns-server.ts";
import { DATAGRAM_PORTS, type Order, PORTS, type Reply, type Request, type Service } from "./messages.ts";
import { serveEcho, serveSink, serveSource, serveSsh } from "./streams.ts";
import { DEAD_ADDRESS, OWN_ADDRESS } from "./zone.ts";
import { Web } from "./web.ts";
import { plain, Witness, type WitnessedConnection } from "./witness.ts";

const DNS_OVER_TLS_PORT = 853;

/**
 * Every address is local (a route of the type `local` to everything), so whatever is dialled from this namespace, a
 * private address too, ends at a server that sees it. One address is the host's own, as a machine has that is on the
 * internet; the others are on no interface, and so are others'.
 */
const NETWORK = [
  ["link", "set", "lo", "up"],
  ["-4", "route", "add", "local", "0.0.0.0/0", "dev", "lo"],
  ["-6", "route", "add", "local", "::/0", "dev", "lo"],
  ["-4", "route", "add", "unreachable", DEAD_ADDRESS, "table", "local"],
  ["addr", "add", `${OWN_ADDRESS}/32`, "dev", "lo"],
];

type Serve = Extract<Order, { do: "serve" }>;

class Host {
  readonly #witness = new Witness();
  #dns: DnsServer | undefined;

  async carryOut(order: Order): Promise<void> {
    if (order.do === "serve") await this.#serve(order);
    if (order.do === "zone") this.#dns?.use(order.zone);
  }

  seen(): ReturnType<Witness["seen"]> {
    return this.#witness.seen();
  }

  async #serve(order: Serve): Promise<void> {
    process.once("disconnect", () => {
      rmSync(order.folder, { recursive: true, force: true });
      process.exit(0);
    });
    for (const words of NETWORK) await promisify(execFile)("ip", words);
    allowPings();
    const dns = new DnsServer(order.zone, this.#witness);
    this.#dns = dns;
    const web = new Web({ ...order, dns });
    const secured = createTlsServer({ cert: order.certificate, key: order.key }, (stream) =>
      dns.serve(quiet(stream), "tls"),
    );
    const services: Record<Service, (socket: Socket, connection: WitnessedConnection) => void> = {
      http: (socket, connection) => afterFirst(socket, connection, () => web.take(socket, connection, false)),
      tls: (socket, connection) =>
        afterFirst(socket, connection, () =>
          socket.localPort === DNS_OVER_TLS_PORT
            ? secured.emit("connection", socket)
            : web.take(socket, connection, true),
        ),
      ssh: serveSsh,
      sink: serveSink,
      source: serveSource,
      echo: serveEcho,
      dns: (socket) => dns.serve(socket, "tcp"),
    };
    for (const [service, ports] of Object.entries(PORTS) as [Service, readonly number[]][])
      for (const port of ports) await this.#listen(service, port, services[service]);
    for (const port of PORTS.dns) await dns.listen(port);
    for (const port of DATAGRAM_PORTS) await this.#watch(port);
  }

  async #listen(
    service: Service,
    port: number,
    serve: (socket: Socket, connection: WitnessedConnection) => void,
  ): Promise<void> {
    const server = createServer({ allowHalfOpen: service === "echo" || service === "sink" }, (socket) =>
      serve(quiet(socket), this.#witness.connection(service, socket)),
    );
    server.listen({ port, host: "::", backlog: 4096 });
    await once(server, "listening");
  }

  /** Here an IPv4 client's own address is the one it dialled: the kernel takes it for a destination that is local. */
  async #watch(port: number): Promise<void> {
    const socket = createSocket("udp6");
    socket.on("message", (message, { address }) => {
      this.#witness.datagrams.push({ to: { address: plain(address), port }, bytes: message.length });
    });
    socket.bind(port, "::");
    await once(socket, "listening");
  }
}

/** Whoever runs the suite may ping from here without a capability (icmp(7)), so that a world's ping has its twin. */
function allowPings(): void {
  const group = process.getgid?.() ?? 0;
  writeFileSync("/proc/sys/net/ipv4/ping_group_range", `${group} ${group}`);
}

/** Shows the first bytes to the witness and puts them back. */
function afterFirst(socket: Socket, connection: WitnessedConnection, serve: () => void): void {
  socket.once("data", (bytes: Buffer) => {
    connection.note(bytes);
    socket.pause();
    socket.unshift(bytes);
    serve();
    process.nextTick(() => socket.resume());
  });
}

/** Clients are cut in the middle here, which is no failure of the server. */
function quiet<Stream extends NodeJS.EventEmitter>(stream: Stream): Stream {
  return stream.on("error", () => undefined);
}

function reply(message: Reply): void {
  process.send?.(message);
}

const host = new Host();
process.on("message", (request: Request) => {
  host.carryOut(request).then(
    () => reply({ id: request.id, seen: host.seen() }),
    (error: unknown) => reply({ id: request.id, failed: String(error) }),
  );
});
