import { spawn } from "node:child_process";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

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
