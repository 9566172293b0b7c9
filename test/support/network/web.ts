/** HTTP/1.1, and HTTP/2 over TLS, with the same pages. */
import { spawn } from "node:child_process";
import { type IncomingMessage, type Server, type ServerResponse, createServer } from "node:http";
import {
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  createSecureServer,
} from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { DnsServer } from "./dns-server.ts";
import { sendPage } from "./pages.ts";
import { sendBytes } from "./streams.ts";
import type { WitnessedConnection } from "./witness.ts";

export type WebOptions = {
  readonly certificate: string;
  readonly key: string;
  readonly repositories: string;
  readonly dns: DnsServer;
  /** A folder of pages (`pages.ts`), or null. */
  readonly pages: string | null;
};

/**
 * The pages:
 *
 * - `/upload` takes a body and answers its bytes
 * - `/download?bytes=N` sends N bytes
 * - `/redirect?to=URL` leads there
 * - `/git/NAME` is a repository
 * - `/dns-query` answers DNS messages (RFC 8484)
 * - with pages of a test's own, those; every other path is 404
 * - without, every other one says `hello from HOST`
 */
export class Web {
  readonly #http: Server;
  readonly #https: Http2SecureServer;
  readonly #options: WebOptions;
  /** By the client's endpoint and ours: TLS has sockets of its own around those that were accepted. */
  readonly #connections = new Map<string, WitnessedConnection>();

  constructor(options: WebOptions) {
    this.#options = options;
    const { certificate: cert, key } = options;
    this.#http = createServer((request, response) => this.#serve(request, response));
    this.#https = createSecureServer({ cert, key, allowHTTP1: true }, (request, response) =>
      this.#serve(request, response),
    );
    this.#https.on("secureConnection", (socket: TLSSocket) => {
      const name: unknown = socket.servername;
      const connection = this.#connections.get(endpoints(socket));
      if (connection !== undefined) connection.sni = typeof name === "string" ? name : null;
    });
    // A client that will not have our certificate, or is cut in the handshake: the witness has its bytes.
    this.#https.on("tlsClientError", () => undefined);
    this.#https.on("sessionError", () => undefined);
  }

  /** A connection whose first bytes came and were put back. */
  take(socket: Socket, connection: WitnessedConnection, secure: boolean): void {
    const key = endpoints(socket);
    this.#connections.set(key, connection);
    socket.once("close", () => this.#connections.delete(key));
    (secure ? this.#https : this.#http).emit("connection", socket);
  }

  #serve(request: WebRequest, response: WebResponse): void {
    const host = request.headers[":authority"] ?? request.headers.host ?? "";
    const path = request.url ?? "/";
    this.#connections.get(endpoints(request.socket))?.requests.push({
      method: request.method ?? "",
      path,
      host: String(host),
      version: request.httpVersion,
    });
    // A client that is cut is what many tests are about.
    response.on("error", () => undefined);
    this.#answer(request, response, new URL(path, "http://any"), String(host));
  }

  #answer(request: WebRequest, response: WebResponse, url: URL, host: string): void {
    const { pathname, searchParams: query } = url;
    if (pathname === "/upload") withBody(request, (body) => response.end(`${body.length}\n`));
    else if (pathname === "/download") {
      response.writeHead(200, { "content-length": query.get("bytes") ?? "0" });
      sendBytes(response as NodeJS.WritableStream, Number(query.get("bytes")));
    } else if (pathname === "/redirect") response.writeHead(302, { location: query.get("to") ?? "/" }).end();
    else if (pathname.startsWith("/git/")) serveGit(request, response, url, this.#options.repositories);
    else if (pathname === "/dns-query") this.#answerQuestion(request, response, query.get("dns"));
    else if (this.#options.pages !== null) sendPage(response, this.#options.pages, pathname);
    else response.end(`hello from ${host}\n`);
  }

  #answerQuestion(request: WebRequest, response: WebResponse, inUrl: string | null): void {
    const answer = (message: Buffer): void => {
      response.writeHead(200, { "content-type": "application/dns-message" });
      response.end(this.#options.dns.answer(message, "https") ?? "");
    };
    if (inUrl === null) withBody(request, answer);
    else answer(Buffer.from(inUrl, "base64url"));
  }
}

function withBody(request: WebRequest, then: (body: Buffer) => void): void {
  const parts: Buffer[] = [];
  request.on("data", (bytes: Buffer) => parts.push(bytes));
  request.on("error", () => undefined);
  request.on("end", () => then(Buffer.concat(parts)));
}

function endpoints(
  socket: Pick<Socket, "remoteAddress" | "remotePort" | "localAddress" | "localPort">,
): string {
  return [socket.remoteAddress, socket.remotePort, socket.localAddress, socket.localPort].join(" ");
}

export type WebRequest = IncomingMessage | Http2ServerRequest;
export type WebResponse = ServerResponse | Http2ServerResponse;

/** Serves the repositories of a folder, below `/git`, by git's own CGI program (git-http-backend(1), RFC 3875). */
export function serveGit(request: WebRequest, response: WebResponse, url: URL, repositories: string): void {
  const child = spawn("git", ["http-backend"], {
    env: {
      PATH: process.env["PATH"],
      GIT_PROJECT_ROOT: repositories,
      GIT_HTTP_EXPORT_ALL: "1",
      PATH_INFO: url.pathname.slice("/git".length),
      QUERY_STRING: url.search.slice(1),
      REQUEST_METHOD: request.method,
      CONTENT_TYPE: header(request, "content-type"),
      HTTP_CONTENT_ENCODING: header(request, "content-encoding"),
      GIT_PROTOCOL: header(request, "git-protocol"),
    },
    stdio: ["pipe", "pipe", "inherit"],
  });
  // git reads what it needs and may end before the client's last byte.
  child.stdin.on("error", () => undefined);
  request.pipe(child.stdin);
  child.once("error", () => response.writeHead(500).end());
  passAnswer(child.stdout, response);
}

/** A CGI program's headers end with an empty line; the status is one of them (RFC 3875, 6.3.3). */
function passAnswer(output: NodeJS.ReadableStream, response: WebResponse): void {
  let head = Buffer.alloc(0);
  const read = (bytes: Buffer): void => {
    head = Buffer.concat([head, bytes]);
    const end = head.indexOf("\r\n\r\n");
    if (end < 0) return;
    output.off("data", read);
    const lines = head.subarray(0, end).toString("latin1").split("\r\n");
    const headers = lines.map((line) => line.split(/:\s*/, 2) as [string, string]);
    const status = headers.find(([name]) => name.toLowerCase() === "status")?.[1] ?? "200";
    const others = headers.filter(([name]) => name.toLowerCase() !== "status");
    response.writeHead(Number.parseInt(status, 10), Object.fromEntries(others));
    const body = response as NodeJS.WritableStream;
    body.write(head.subarray(end + 4));
    output.pipe(body);
  };
  output.on("data", read);
}

function header(request: WebRequest, name: string): string {
  const value = request.headers[name];
  return typeof value === "string" ? value : "";
}
