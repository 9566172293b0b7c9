/** A stand-in for Lima, for one broker: its "machine" is a world agent of this host. */
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
import { fileURLToPath } from "node:url";
import { homeLayout } from "../../../broker/settings/home.ts";
import { ROOT_OVERLAY } from "../broker/broker.ts";
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
    const folder = mkdtempSync(join(actor.uid === 0 ? tmpdir() : actor.home, "sb-lima-"));
    const { node, launcher } = await installationFor(actor);
    const bin = join(folder, "bin");
    mkdirSync(bin);
    copyFileSync(STAND_IN, join(folder, "limactl.mjs"));
    writeFileSync(join(bin, "limactl"), `#!/bin/sh\nexec '${node}' '${join(folder, "limactl.mjs")}' "$@"\n`);
    const env = {
      SUBSTRATE_HOME: join(folder, "home"),
      PATH: "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
    };
    writeFileSync(join(folder, "agent.json"), JSON.stringify({ argv: [node, launcher, "agent"], env }));
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

  stop(): void {
    this.kill("SIGTERM");
    const overlay =
      this.#actor.uid === 0 ? [homeLayout(join(this.folder, "home"), ROOT_OVERLAY).overlay] : [];
    removeTrees(this.folder, ...overlay);
  }
}
