/** An editor by the official SDK, with a scripted agent behind the real proxy. */
import type { ChildProcess } from "node:child_process";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { client, type ClientConnection, ndJsonStream } from "@agentclientprotocol/sdk";
import { build } from "esbuild";
import type { TestBroker } from "../broker/broker.ts";
import { installationFor } from "../broker/installation.ts";
import { spawnAs } from "../users/users.ts";

export type Step = { readonly method: string; readonly params?: Readonly<Record<string, unknown>> };

export type Told = Readonly<Record<string, unknown>>;

const AGENT = fileURLToPath(new URL("acp-agent.mjs", import.meta.url));

/** Puts the scripted agent, with the SDK in it, where the broker's user can read it. */
export async function agentFor(broker: TestBroker): Promise<string> {
  const outfile = join(broker.folder, "agent.mjs");
  await build({
    entryPoints: [AGENT],
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    logLevel: "error",
  });
  chmodSync(outfile, 0o644);
  return outfile;
}

export class Editor implements AsyncDisposable {
  readonly proxy: ChildProcess;
  readonly ended: Promise<number | null>;
  /** What the editor itself was asked, and shown. */
  readonly asked: Told[] = [];
  readonly shown: Told[] = [];
  stderr = "";
  readonly #connection: ClientConnection;

  private constructor(proxy: ChildProcess) {
    this.proxy = proxy;
    this.ended = new Promise((resolve) => proxy.once("exit", resolve));
    proxy.stderr?.on("data", (bytes: Buffer) => {
      this.stderr += bytes.toString();
    });
    const { stdin, stdout } = proxy;
    if (stdin === null || stdout === null) throw new Error("The proxy has no pipes");
    stdin.on("error", () => undefined);
    const app = client({ name: "test" })
      .onRequest("session/request_permission", ({ params }) => {
        this.asked.push(params);
        return { outcome: { outcome: "selected", optionId: "yes" } };
      })
      .onNotification("session/update", ({ params }) => void this.shown.push(params));
    const input = Readable.toWeb(stdout) as unknown as ReadableStream<Uint8Array>;
    this.#connection = app.connect(ndJsonStream(Writable.toWeb(stdin) as WritableStream<Uint8Array>, input));
  }

  static async start(broker: TestBroker, agent: readonly string[]): Promise<Editor> {
    const { node, launcher } = await installationFor(broker.actor);
    const words = [node, launcher, "acp", "--agent", "acp", "--", ...agent];
    const env = { SUBSTRATE_HOME: broker.home };
    return new Editor(
      spawnAs(broker.actor, words, { cwd: broker.project, env, stdio: ["pipe", "pipe", "pipe"] }),
    );
  }

  /** Opens the session; returns the capabilities that the agent was told. */
  async open(cwd: string): Promise<unknown> {
    // This editor can neither read files nor run terminals.
    await this.#connection.agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
    const opened = await this.#connection.agent.request("session/new", { cwd, mcpServers: [] });
    return opened._meta?.["capabilities"];
  }

  /** Lets the agent make requests; returns what each was answered. */
  async turn(...steps: readonly Step[]): Promise<readonly Told[]> {
    const prompt = [{ type: "text" as const, text: JSON.stringify(steps) }];
    const params = { sessionId: "scripted-session", prompt };
    const { agent } = this.#connection;
    const reply: { _meta?: Told | null } = await agent.request("session/prompt", params);
    return reply._meta?.["results"] as readonly Told[];
  }

  close(): void {
    this.proxy.stdin?.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
    await this.ended;
  }
}
