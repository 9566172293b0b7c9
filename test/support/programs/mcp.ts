/** Clients of `substrate mcp`: the official SDK's, and a bridge for programs that speak MCP over HTTP alone. */
import { type ChildProcess, spawn } from "node:child_process";
import { createServer, type Server } from "node:http";
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import type { TestBroker } from "../broker/broker.ts";
import { installationFor } from "../broker/installation.ts";
import { type Actor, changeTo } from "../users/users.ts";

/** The words that start the server as a user. */
export async function mcpWords(
  actor: Actor,
  ...options: readonly string[]
): Promise<readonly [string, ...string[]]> {
  const [first = "", ...words] = [...changeTo(actor), ...(await ownMcpWords(actor, ...options))];
  return [first, ...words];
}

/** The same for whoever is that user already. */
export async function ownMcpWords(
  actor: Actor,
  ...options: readonly string[]
): Promise<readonly [string, ...string[]]> {
  const { node, launcher } = await installationFor(actor);
  return [node, launcher, "mcp", ...options];
}

export type Said = { readonly text: string; readonly isError: boolean };

export class McpClient implements AsyncDisposable {
  readonly client: Client;
  /** All that the server wrote to standard error. */
  stderr = "";

  private constructor(client: Client) {
    this.client = client;
  }

  static async connect(
    broker: TestBroker,
    options: readonly string[],
    as: { readonly modern?: boolean; readonly roots?: readonly string[]; readonly cwd?: string } = {},
  ): Promise<McpClient> {
    const { modern = false, roots, cwd = broker.project } = as;
    const [command, ...args] = await mcpWords(broker.actor, ...options);
    const client = new Client(
      { name: "test", version: "1" },
      {
        capabilities: { elicitation: { form: {} }, ...(roots === undefined ? {} : { roots: {} }) },
        ...(modern ? { versionNegotiation: { mode: "auto" as const } } : {}),
      },
    );
    if (roots !== undefined)
      client.setRequestHandler("roots/list", () => ({
        roots: roots.map((path) => ({ uri: `file://${path}` })),
      }));
    const { home, name } = broker.actor;
    const env = { SUBSTRATE_HOME: broker.home, HOME: home, USER: name, PATH: process.env["PATH"] ?? "" };
    const transport = new StdioClientTransport({ command, args, env, cwd, stderr: "pipe" });
    const own = new McpClient(client);
    transport.stderr?.on("data", (bytes: Buffer) => {
      own.stderr += bytes.toString();
    });
    await client.connect(transport);
    return own;
  }

  async use(
    name: string,
    args: Readonly<Record<string, unknown>> = {},
    options: {
      readonly signal?: AbortSignal;
      readonly onprogress?: (progress: { message?: string }) => void;
    } = {},
  ): Promise<Said> {
    const result = await this.client.callTool({ name, arguments: args }, options as never);
    const [first] = result.content as readonly { text?: string }[];
    return { text: first?.text ?? "", isError: result.isError === true };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close();
  }
}

/** Passes each POST to a server on pipes, and its answer back. */
export class HttpBridge implements AsyncDisposable {
  readonly url: string;
  readonly #server: Server;
  readonly #child: ChildProcess;

  private constructor(url: string, server: Server, child: ChildProcess) {
    this.url = url;
    this.#server = server;
    this.#child = child;
  }

  static async start(
    [command, ...args]: readonly [string, ...string[]],
    env: Record<string, string>,
  ): Promise<HttpBridge> {
    const child = spawn(command, args, { env, stdio: ["pipe", "pipe", "inherit"] });
    const waiting = new Map<unknown, (line: string) => void>();
    if (child.stdout === null) throw new Error("The server has no standard output");
    createInterface({ input: child.stdout }).on("line", (line) => {
      const { id } = JSON.parse(line) as { id?: unknown };
      waiting.get(id)?.(line);
      waiting.delete(id);
    });
    const server = createServer((request, response) => {
      if (request.method !== "POST") return void response.writeHead(405).end();
      const parts: Buffer[] = [];
      request.on("data", (part: Buffer) => parts.push(part));
      request.on("end", () => {
        const message = JSON.parse(Buffer.concat(parts).toString()) as { id?: unknown };
        child.stdin?.write(`${JSON.stringify(message)}\n`);
        if (message.id === undefined) return void response.writeHead(202).end();
        waiting.set(message.id, (line) =>
          response.writeHead(200, { "content-type": "application/json" }).end(line),
        );
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    return new HttpBridge(`http://127.0.0.1:${port}/mcp`, server, child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin?.end();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
