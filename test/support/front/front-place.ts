/** A native front alone in a folder: the broker is a {@link StreamServer}, and a script stands where Node does. */
import { type ChildProcess, spawn, type StdioOptions } from "node:child_process";
import { once } from "node:events";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Call, StreamServer } from "./stream-server.ts";

const BUILT = fileURLToPath(new URL("../../../.build/substrate", import.meta.url));

/** A stand-in for Node: prints its arguments. */
export const NODE = `#!/bin/sh\nshift\nprintf 'Node:'\nprintf ' %s' "$@"\n`;

export type Serve = (call: Call) => Promise<void> | void;

export type FrontEnded = {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: Buffer;
  readonly stderr: string;
};

export type FrontOptions = {
  readonly stdin?: string | Buffer;
  readonly env?: Readonly<Record<string, string>>;
  readonly stdio?: StdioOptions;
};

export class FrontPlace {
  readonly folder = mkdtempSync(join(tmpdir(), "substrate-front-"));
  readonly home = join(this.folder, "home");
  readonly socket = join(this.home, "sock/agent.sock");
  readonly #program = join(this.folder, ".build/substrate");
  #server: StreamServer | undefined;

  constructor() {
    mkdirSync(join(this.folder, ".build"));
    mkdirSync(join(this.home, "sock/agents"), { recursive: true });
    cpSync(BUILT, this.#program);
    this.setNode(NODE);
  }

  setNode(script: string): void {
    writeFileSync(join(this.folder, ".build/node"), script);
    chmodSync(join(this.folder, ".build/node"), 0o755);
  }

  get calls(): readonly Call[] {
    return this.#server?.calls ?? [];
  }

  /** Serves the socket in another way than before. */
  async serve(how: Serve): Promise<void> {
    this.stopServing();
    this.#server = await StreamServer.listen(this.socket, how);
  }

  /** Throws the first error of serving. */
  stopServing(): void {
    const server = this.#server;
    this.#server = undefined;
    server?.close();
    rmSync(this.socket, { force: true });
    const [error] = server?.errors ?? [];
    if (error !== undefined) throw error;
  }

  remove(): void {
    this.stopServing();
    rmSync(this.folder, { recursive: true, force: true });
  }

  start(words: readonly string[], { env = {}, stdio = "pipe" }: FrontOptions = {}): ChildProcess {
    return spawn(this.#program, words, {
      cwd: this.folder,
      env: { HOME: this.folder, PATH: "/usr/bin:/bin", SUBSTRATE_HOME: this.home, ...env },
      stdio,
    });
  }

  run(words: readonly string[], options: FrontOptions = {}): Promise<FrontEnded> {
    const child = this.start(words, options);
    child.stdin?.on("error", () => undefined).end(options.stdin ?? "");
    return ended(child);
  }

  /** Runs `exec -- true` against a broker that answers so. */
  async runs(how: Serve): Promise<FrontEnded> {
    await this.serve(how);
    return this.run(["exec", "--", "true"]);
  }
}

export async function ended(child: ChildProcess): Promise<FrontEnded> {
  const stdout: Buffer[] = [];
  const stderr: Buffer[] = [];
  child.stdout?.on("data", (bytes: Buffer) => stdout.push(bytes));
  child.stderr?.on("data", (bytes: Buffer) => stderr.push(bytes));
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { code, signal, stdout: Buffer.concat(stdout), stderr: Buffer.concat(stderr).toString() };
}

/** Memory of a process, in KiB. */
export function residentKb(pid: number | undefined): number {
  const [, kb = "0"] = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kb);
}
