/** HTTP/1.1, and HTTP/2 over TLS, with the same pages. */
import { createServer, type Server } from "node:http";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { DnsServer } from "./dns-server.ts";
import { serveGit, type WebRequest, type WebResponse } from "./git-backend.ts";
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
