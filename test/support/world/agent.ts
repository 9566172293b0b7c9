/** A world agent of a user's, with a home and a socket of its own. */
import type { ChildProcess } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { call } from "../../../api/client/client.ts";
import { homeLayout } from "../../../broker/settings/home.ts";
import { ROOT_OVERLAY } from "../broker/broker.ts";
import { installationFor } from "../broker/installation.ts";
import { removeTrees } from "../users/folders.ts";
import { type Actor, spawnAs } from "../users/users.ts";

const READY_MS = 20_000;

export class TestAgent {
  readonly folder: string;
  readonly socket: string;
  readonly #actor: Actor;
  readonly #environment: Readonly<Record<string, string>>;
  #process: ChildProcess | undefined;

  private constructor(actor: Actor, folder: string, environment: Readonly<Record<string, string>>) {
    this.folder = folder;
    this.socket = join(folder, "agent.sock");
    this.#actor = actor;
    this.#environment = environment;
  }

  static async start(actor: Actor, environment: Readonly<Record<string, string>> = {}): Promise<TestAgent> {
    const folder = mkdtempSync(join(actor.uid === 0 ? tmpdir() : actor.home, "sb-agent-"));
    chmodSync(folder, 0o755);
    chownSync(folder, actor.uid, actor.gid);
    const agent = new TestAgent(actor, folder, environment);
    await agent.again();
    return agent;
  }

  get pid(): number {
    if (this.#process?.pid === undefined) throw new Error("The agent does not run");
    return this.#process.pid;
  }

  /** Variables of a broker that uses it. */
  get environment(): Readonly<Record<string, string>> {
    return { SUBSTRATE_BACKEND: "agent", SUBSTRATE_AGENT_SOCKET: this.socket };
  }

  /** Starts it after its end. */
  async again(): Promise<void> {
    const { node, launcher } = await installationFor(this.#actor);
    const child = spawnAs(this.#actor, [node, launcher, "agent", "--socket", this.socket], {
      cwd: "/",
      env: { ...this.#environment, SUBSTRATE_HOME: join(this.folder, "home") },
      stdio: ["ignore", "ignore", "ignore"],
    });
    this.#process = child;
    for (const end = Date.now() + READY_MS; ; await sleep(25)) {
      const status = await call(this.socket, "GET", "/v1/health").then(
        (answer) => answer.status,
        () => 0,
      );
      if (status === 200) return;
      if (Date.now() > end || child.exitCode !== null) throw new Error("The agent did not become ready");
    }
  }

  /** Ends it; resolves with its exit code. */
  async kill(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#process;
    if (child?.pid === undefined || child.exitCode !== null || child.signalCode !== null) return null;
    const gone = new Promise<number | null>((resolve) => child.once("exit", resolve));
    process.kill(child.pid, signal);
    return await gone;
  }

  async stop(): Promise<void> {
    await this.kill("SIGTERM");
    const overlay =
      this.#actor.uid === 0 ? [homeLayout(join(this.folder, "home"), ROOT_OVERLAY).overlay] : [];
    removeTrees(this.folder, ...overlay);
  }
}
