/** An MCP server on standard input and output, until the input ends. */
import { Server, type ServerContext } from "@modelcontextprotocol/server";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { statSync } from "node:fs";
import { isSocket } from "../../broker/model/host-paths.ts";
import { isAbsolute } from "node:path";
import { fileURLToPath } from "node:url";
import { call, NoBroker } from "../client/client.ts";
import { Outputs } from "./outputs.ts";
import { definitionOf, type Mcp, misfit, TOOLS } from "./tools.ts";
import { WholeLines } from "./whole-lines.ts";

export type McpOptions = {
  readonly version: string;
  readonly agent: string;
  readonly profile: string | undefined;
  /** The folder that the person named; undefined: the client's first root, else `started`. */
  readonly cwd: string | undefined;
  readonly started: string;
  /** The agents' socket of all, and the one of this agent alone, if the settings name it. */
  readonly sockets: { readonly shared: string; readonly own: string | undefined };
  readonly waitMs: number;
  readonly stdin: NodeJS.ReadStream;
  readonly complain: (words: string) => void;
  /** Starts a broker where none answers. */
  readonly startBroker: () => Promise<void>;
};

const INSTRUCTIONS =
  "Commands and file changes run in an isolated world under a policy that a person wrote. A refusal names its rule and what to do next. 'isolate' means that changes are held until they are applied.";

/** Bytes of one message. Larger than the broker's bound on a request, so that the tool answers with the broker's own sentence. */
const MOST_MESSAGE = 32 * 1024 * 1024;

/** Limit for telling a beginning; the call that waits for it goes on then. */
const MOST_BEGIN_MS = 5000;

/** Serves one client. Resolves when its input ends (0), or when a message of it is too long to go on (1). */
export async function serveMcp(options: McpOptions): Promise<number> {
  const shared = {
    outputs: new Outputs(),
    scopes: new Map<string, string>(),
    session: { session_key: `mcp-${randomUUID()}` },
  };
  // This line of the SDK speaks 2026-07-28, which Claude Code asks for first, and the 2025 line of the other clients.
  const input = options.stdin.pipe(new WholeLines(MOST_MESSAGE));
  const transport = new StdioServerTransport(input, process.stdout, { maxBufferSize: MOST_MESSAGE });
  const handle = serveStdio(() => serverOf(options, shared), {
    transport,
    onerror: (error) => options.complain(`MCP: ${error.message}`),
  });
  const closed = new Promise<number>((resolve) => {
    const { onclose } = transport;
    transport.onclose = () => {
      onclose?.();
      resolve(options.stdin.readable ? 1 : 0);
    };
  });
  // When the client's connection breaks, stdin closes without an 'end', and `pipe` never ends the other stream.
  const ended = Promise.race([once(input, "end"), once(options.stdin, "close")]).then(() => 0);
  const code = await Promise.race([ended, closed]);
  // So that this process can exit while the client keeps its end open.
  options.stdin.unpipe(input).pause();
  await handle.close();
  return code;
}

function serverOf(options: McpOptions, shared: Pick<Mcp, "outputs" | "scopes" | "session">): Server {
  const server = new Server(
    { name: "substrate", version: options.version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  );
  const { own, shared: socket } = options.sockets;
  let folder: Promise<string> | undefined;
  const cwd = (): Promise<string> => (folder ??= folderFor(options, server));
  const mcp: Mcp = {
    ...shared,
    socket: own !== undefined && isSocket(own) ? own : socket,
    waitMs: options.waitMs,
    spot: async ({ cwd: asked, scope }) => ({
      agent_id: options.agent,
      cwd: typeof asked === "string" ? absolute(await cwd(), asked) : await cwd(),
      ...(options.profile === undefined ? {} : { profile: options.profile }),
      ...(typeof scope === "string" ? { scope_token: shared.scopes.get(scope) ?? scope } : {}),
    }),
  };
  server.setRequestHandler("tools/list", () => ({ tools: TOOLS.map(definitionOf) }));
  let isTold = false;
  let telling: Promise<void> | undefined;
  const tell = async (): Promise<void> => {
    const event = { agent_id: options.agent, cwd: await cwd(), event: "session_start", ...shared.session };
    const signal = AbortSignal.timeout(MOST_BEGIN_MS);
    isTold = (await call(mcp.socket, "POST", "/v1/events", event, signal)).status === 200;
  };
  /** Tells the broker the folder in which the session began, before a call can name another one. */
  const begin = async (): Promise<void> => {
    if (isTold) return;
    telling ??= tell()
      .catch(async (error: unknown) => {
        if (error instanceof NoBroker) await options.startBroker().then(tell);
      })
      .catch(() => {
        // Ignoring: the call itself says why no broker answers, and the next one tells again.
      })
      .finally(() => (telling = undefined));
    await telling;
  };
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    await begin();
    const { text, isError } = await answer(options, mcp, params, context);
    return { content: [{ type: "text" as const, text }], ...(isError === true ? { isError } : {}) };
  });
  return server;
}

async function answer(
  options: McpOptions,
  mcp: Mcp,
  {
    name,
    arguments: args = {},
  }: { readonly name: string; readonly arguments?: Record<string, unknown> | undefined },
  { mcpReq }: ServerContext,
): Promise<{ readonly text: string; readonly isError?: boolean }> {
  const tool = TOOLS.find((one) => one.name === name);
  if (tool === undefined) return { text: `Unknown tool '${name}'`, isError: true };
  const wrong = misfit(tool, args);
  if (wrong !== undefined) return { text: wrong, isError: true };
  const token = mcpReq._meta?.progressToken;
  let count = 0;
  const progress = (message: string): void => {
    if (token === undefined) return;
    count += 1;
    const params = { progressToken: token, progress: count, message };
    mcpReq.notify({ method: "notifications/progress", params }).catch(() => {
      // The client is gone, ignoring: its request ends by itself.
    });
  };
  const turn = { signal: mcpReq.signal, progress };
  try {
    return await tool.run(mcp, args, turn);
  } catch (error) {
    if (!(error instanceof NoBroker)) return failed(error);
  }
  try {
    await options.startBroker();
    return await tool.run(mcp, args, turn);
  } catch (error) {
    return failed(error);
  }
}

function failed(error: unknown): { readonly text: string; readonly isError: true } {
  const why = error instanceof Error ? error.message : String(error);
  return { text: `${why}\nhint: a person can look with 'substrate broker status'`, isError: true };
}

const ROOTS_MS = 3000;

async function folderFor({ cwd, started }: McpOptions, server: Server): Promise<string> {
  if (cwd !== undefined) return cwd;
  if (server.getClientCapabilities()?.roots === undefined) return started;
  try {
    const { roots } = await server.listRoots(undefined, { timeout: ROOTS_MS });
    const [root] = roots.filter(({ uri }) => uri.startsWith("file://")).map(({ uri }) => fileURLToPath(uri));
    return root !== undefined && statSync(root).isDirectory() ? root : started;
  } catch {
    // No answer, no such folder, or a protocol that has no such request, ignoring which: where the client started this.
    return started;
  }
}

function absolute(folder: string, path: string): string {
  return isAbsolute(path) ? path : `${folder}/${path}`;
}
