/** A stand-in for Lima, for one broker: its "machine" is a world agent of this host, or what a manager has. */
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { homeLayout } from "../../../broker/settings/home.ts";
import type { ErrorReply } from "../../../schemas/generated/types.ts";
import { ROOT_OVERLAY, type TestBroker } from "../broker/broker.ts";
import { installationFor } from "../broker/installation.ts";
import { removeTrees } from "../users/folders.ts";
import type { Actor } from "../users/users.ts";

const STAND_IN = fileURLToPath(new URL("./limactl.mjs", import.meta.url));

export class TestLima {
  readonly folder: string;
  readonly #actor: Actor;

  private constructor(actor: Actor, folder: string) {
    this.#actor = actor;
    this.folder = folder;
  }

  static async make(actor: Actor): Promise<TestLima> {
    const { node, launcher } = await installationFor(actor);
    return TestLima.behind(actor, node, (folder) => {
      const PATH = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
      const env = { SUBSTRATE_HOME: join(folder, "home"), PATH };
      return { agent: { argv: [node, launcher, "agent"], env } };
    });
  }

  /** @param what returns what `limactl.mjs` reads from behind.json, for the stand-in's folder. */
  static behind(actor: Actor, node: string, what: (folder: string) => object): TestLima {
    const folder = mkdtempSync(join(actor.uid === 0 ? tmpdir() : actor.home, ".sb-lima-"));
    const bin = join(folder, "bin");
    mkdirSync(bin);
    copyFileSync(STAND_IN, join(folder, "limactl.mjs"));
    writeFileSync(join(bin, "limactl"), `#!/bin/sh\nexec '${node}' '${join(folder, "limactl.mjs")}' "$@"\n`);
    writeFileSync(join(folder, "behind.json"), JSON.stringify(what(folder)));
    chmodSync(join(bin, "limactl"), 0o755);
    chmodSync(folder, 0o755);
    chownSync(folder, actor.uid, actor.gid);
    return new TestLima(actor, folder);
  }

  /** Variables of a broker that uses it. */
  get environment(): Readonly<Record<string, string>> {
    return {
      SUBSTRATE_BACKEND: "lima",
      LIMA_HOME: this.folder,
      PATH: `${join(this.folder, "bin")}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin`,
    };
  }

  /** The calls of `limactl` that change the machine: each call's verb. */
  get verbs(): readonly string[] {
    const calls = join(this.folder, "calls");
    if (!existsSync(calls)) return [];
    const lines = readFileSync(calls, "utf8").trim().split("\n");
    return lines
      .map((line) => (JSON.parse(line) as string[])[0] ?? "")
      .filter((verb) => verb !== "--version" && verb !== "list");
  }

  get pid(): number {
    return (JSON.parse(readFileSync(join(this.folder, "machine.json"), "utf8")) as { pid: number }).pid;
  }

  kill(signal: NodeJS.Signals): void {
    if (!existsSync(join(this.folder, "machine.json")) || this.pid === 0) return;
    try {
      process.kill(this.pid, signal);
    } catch {
      // The agent has ended already.
    }
  }

  /** Ends the machine, and removes it. */
  stop(): void {
    this.kill("SIGTERM");
    this.remove();
  }

  /** Of a machine that was never made, or has ended. */
  remove(): void {
    const overlay =
      this.#actor.uid === 0 ? [homeLayout(join(this.folder, "home"), ROOT_OVERLAY).overlay] : [];
    removeTrees(this.folder, ...overlay);
  }
}

/** An emulated machine on a busy host. */
const START_MS = 14 * 60_000;

/** Asks until the machine runs a command. Returns what callers were told before. */
export async function untilReady(broker: TestBroker): Promise<readonly ErrorReply["error"][]> {
  const refusals: ErrorReply["error"][] = [];
  for (const end = Date.now() + START_MS; ; await sleep(500)) {
    const { status, document } = await broker.post({ cmd: "true" });
    if (status === 200) return refusals;
    refusals.push((document as ErrorReply).error);
    if (Date.now() > end) throw new Error(`No machine in time: ${JSON.stringify(refusals.at(-1))}`);
  }
}
