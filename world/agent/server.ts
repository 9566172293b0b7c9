/** The world agent: serves a backend to brokers that connect to a Unix socket. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { WorldBackend } from "../model/world.ts";
import { StreamSocket } from "../wire/stream-socket.ts";
import {
  type AgentHealth,
  CONNECT_PATH,
  HEALTH_PATH,
  MAX_MESSAGE,
  PROTOCOL,
  PROTOCOL_HEADER,
  STORE,
  STORE_HEADER,
  STREAM_PATH,
  VERSION_HEADER,
} from "../wire/protocol.ts";
import { Session } from "./session.ts";
import { Streams } from "./streams.ts";

export type AgentOptions = {
  readonly backend: WorldBackend;
  readonly version: string;
  /** Holds the layers of overlays, in a folder for each broker's home. */
  readonly overlay: string;
  /** Never visible in a world: the agent's own folders. */
  readonly hidden: readonly string[];
  /** Never writable in a world: the agent's installation. */
  readonly sealed: readonly string[];
};

/** How long running commands may go on after a stop signal. */
const DRAIN_MS = 10_000;

/** Brokers at once; one is usual. */
const MOST_BROKERS = 64;

type Refusal = { readonly status: number; readonly message: string; readonly hint: string };

export class WorldAgent {
  /** The caller makes it listen, on a socket that only its own user may connect to: nothing else authenticates a broker. */
  readonly server: Server = createServer((request, response) => this.#answer(request, response));
  readonly #options: AgentOptions;
  readonly #sockets = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE,
  });
  readonly #sessions = new Set<Session>();
  readonly #streams = new Streams();
  #isDraining = false;

  constructor(options: AgentOptions) {
    this.#options = options;
    this.#sockets.on("headers", (headers) => headers.push(...ownHeaders(options.version)));
    this.server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.on("error", () => socket.destroy());
      this.#upgrade(request, socket, head);
    });
  }

  /** Refuses new worlds, waits for running commands up to a bound, then ends every world and connection. */
  async drain(patienceMs = DRAIN_MS): Promise<void> {
    this.#isDraining = true;
    await Promise.all([...this.#sessions].map((session) => session.drain(patienceMs)));
    await this.#options.backend.close();
    for (const session of this.#sessions) session.close("the world agent has stopped");
    this.#streams.close();
    this.server.closeAllConnections();
  }

  #answer({ method, url }: IncomingMessage, response: ServerResponse): void {
    if (method === "GET" && url === HEALTH_PATH) return sendJson(response, 200, this.#health());
    sendJson(response, 404, {
      error: {
        message: `The world agent has no '${method} ${url}'`,
        hint: `GET ${HEALTH_PATH} answers; a broker connects to ${CONNECT_PATH}`,
      },
    });
  }

  #health(): AgentHealth {
    return {
      protocol: PROTOCOL,
      version: this.#options.version,
      state: this.#isDraining ? "draining" : "serving",
      backend: this.#options.backend.name,
      brokers: this.#sessions.size,
      worlds: [...this.#sessions].reduce((sum, { worlds }) => sum + worlds, 0),
    };
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const { url = "" } = request;
    if (url.startsWith(STREAM_PATH)) {
      const take = this.#streams.take(url.slice(STREAM_PATH.length));
      if (take === undefined) return refuse(socket, { status: 404, message: "No such stream", hint: "" });
      return this.#sockets.handleUpgrade(request, socket, head, (opened) => take(new StreamSocket(opened)));
    }
    const refusal = url === CONNECT_PATH ? this.#refusalOf(request) : NO_SUCH_PATH;
    if (refusal !== undefined) return refuse(socket, refusal, ownHeaders(this.#options.version));
    const store = String(request.headers[STORE_HEADER]);
    this.#sockets.handleUpgrade(request, socket, head, (opened) => {
      const session = new Session(opened, { ...this.#options, store, streams: this.#streams });
      this.#sessions.add(session);
      void session.over.then(() => this.#sessions.delete(session));
    });
  }

  #refusalOf({ headers }: IncomingMessage): Refusal | undefined {
    const protocol = headers[PROTOCOL_HEADER];
    if (protocol !== String(PROTOCOL))
      return {
        status: 426,
        message: `The world agent (substrate ${this.#options.version}) speaks protocol ${PROTOCOL}, and the broker (substrate ${String(headers[VERSION_HEADER])}) protocol ${String(protocol)}`,
        hint: "Install the same version of substrate on both sides, then start the agent again",
      };
    if (!STORE.test(String(headers[STORE_HEADER])))
      return { status: 400, message: `The header '${STORE_HEADER}' must be 16 hexadecimal digits`, hint: "" };
    if (this.#isDraining)
      return { status: 503, message: "The world agent is stopping", hint: "Try again when it runs again" };
    if (this.#sessions.size >= MOST_BROKERS)
      return { status: 503, message: `${MOST_BROKERS} brokers are connected already`, hint: "Stop one" };
    return undefined;
  }
}

const NO_SUCH_PATH: Refusal = { status: 404, message: "No such path", hint: `Connect to ${CONNECT_PATH}` };

function ownHeaders(version: string): readonly string[] {
  return [`${PROTOCOL_HEADER}: ${PROTOCOL}`, `${VERSION_HEADER}: ${version}`];
}

function refuse(socket: Duplex, { status, message, hint }: Refusal, headers: readonly string[] = []): void {
  const body = JSON.stringify({ error: { message, hint } });
  const head = [
    `HTTP/1.1 ${status} Refused`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    "connection: close",
    ...headers,
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}

function sendJson(response: ServerResponse, status: number, document: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(document));
}
