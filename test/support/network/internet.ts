/** An internet of the test's own, in a network namespace: names, servers, and a witness of all that reaches it. */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { buildSync } from "esbuild";
import { type Ended, runAs, type RunAsOptions, currentUser } from "../../users.ts";
import { makeCertificates } from "./certificates.ts";
import type { Pages } from "../registry/pages.ts";
import type { Order, Reply, Seen, SeenConnection, Zone } from "./messages.ts";
import { enterArgv, makeArgv } from "./namespace.ts";
import { writePages } from "./pages.ts";
import { makeRepository } from "./repository.ts";
import { ZONE } from "./zone.ts";

/** The longest that one order may take. */
const ORDER_MS = 10_000;
/** What a client has sent and its server has not read yet is read within this. */
const IN_FLIGHT_MS = 60;
/** How long connections that a test's action left may take to end before they are reported as open. */
const SETTLE_MS = 1500;

export type InternetOptions = {
  /** In place of the usual names (`zone.ts`). */
  readonly zone?: Zone;
  /** What its web servers answer by path, at every address; any other path is 404 then. */
  readonly pages?: Pages;
};

export class TestInternet {
  /** The authority of its servers' certificates, as PEM. */
  readonly authority: string;
  /** The folder of what it made. Nothing in it is for the programs under test. */
  readonly folder: string;
  /** Words before a program's own that run it in this namespace, as whoever runs the suite. */
  readonly enter: readonly string[];
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, (reply: Reply) => void>();
  #orders = 0;
  #ended: Error | undefined;

  private constructor(folder: string, authority: string, child: ChildProcess) {
    if (child.pid === undefined) throw new Error("The internet's process did not start");
    this.folder = folder;
    this.authority = authority;
    this.enter = enterArgv(child.pid);
    this.#process = child;
    child.on("message", (reply: Reply) => this.#waiting.get(reply.id)?.(reply));
    child.once("exit", (code, signal) => this.#hasEnded(`it ended with ${code ?? signal}`));
    child.once("error", (error) => this.#hasEnded(error.message));
  }

  /** Throws when this machine makes no such namespace, or lacks `ip`, `openssl` or `git`. */
  static async open({ zone = ZONE, pages }: InternetOptions = {}): Promise<TestInternet> {
    const folder = mkdtempSync(join(tmpdir(), "sb-internet-"));
    try {
      const certificates = await makeCertificates(folder, Object.keys(zone));
      const repositories = join(folder, "git");
      mkdirSync(repositories);
      makeRepository(join(repositories, "project.git"));
      if (pages !== undefined) writePages(pagesFolder(folder), pages);
      const child = startIn(folder);
      const internet = new TestInternet(folder, readFileSync(certificates.authority, "utf8"), child);
      await internet.#order({
        do: "serve",
        zone,
        certificate: readFileSync(certificates.certificate, "utf8"),
        key: readFileSync(certificates.key, "utf8"),
        folder,
        repositories,
        pages: pages === undefined ? null : pagesFolder(folder),
      });
      return internet;
    } catch (error) {
      rmSync(folder, { recursive: true, force: true });
      throw error;
    }
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** Runs a program in the namespace, outside of every world. */
  run(argv: readonly string[], options: RunAsOptions = {}): Promise<Ended> {
    return runAs(currentUser(), [...this.enter, ...argv], { cwd: this.folder, ...options });
  }

  /** Other names from now on; all turns begin anew. */
  async setZone(zone: Zone): Promise<void> {
    await this.#order({ do: "zone", zone });
  }

  /** All that the servers have seen since they were started. */
  async seen(): Promise<Seen> {
    return await this.#order({ do: "seen" });
  }

  /** What an action leads to, and what the servers saw of it. Actions do not overlap. */
  async during<Result>(
    action: () => Promise<Result>,
  ): Promise<{ readonly result: Result; readonly seen: Seen }> {
    const before = await this.seen();
    const result = await action();
    await sleep(IN_FLIGHT_MS);
    for (const end = Date.now() + SETTLE_MS; ; await sleep(20)) {
      const seen = since(before, await this.seen());
      if (Date.now() > end || !seen.connections.some(({ open }) => open)) return { result, seen };
    }
  }

  /** Ends its servers and removes all it made. */
  async close(): Promise<void> {
    await this.forget();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** What the end of the process that opened it does, and no more: its own process removes what it made. */
  async forget(): Promise<void> {
    if (this.#ended !== undefined) return;
    const gone = new Promise((resolve) => this.#process.once("exit", resolve));
    this.#process.disconnect();
    const late = setTimeout(() => this.#process.kill("SIGKILL"), ORDER_MS);
    await gone;
    clearTimeout(late);
  }

  #order(order: Order): Promise<Seen> {
    const id = ++this.#orders;
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => settle({ id, failed: `no answer in ${ORDER_MS} ms` }), ORDER_MS);
      const settle = (reply: Reply): void => {
        clearTimeout(late);
        this.#waiting.delete(id);
        if ("seen" in reply) resolve(reply.seen);
        else reject(new Error(`The tests' internet could not '${order.do}': ${reply.failed}`));
      };
      this.#waiting.set(id, settle);
      if (this.#ended !== undefined) settle({ id, failed: this.#ended.message });
      else this.#process.send({ ...order, id });
    });
  }

  #hasEnded(why: string): void {
    this.#ended = new Error(why);
    for (const [id, settle] of this.#waiting) settle({ id, failed: why });
  }
}

/** The connections that a service saw. */
export function connectionsTo(seen: Seen, service: SeenConnection["service"]): readonly SeenConnection[] {
  return seen.connections.filter((connection) => connection.service === service);
}

/** What a server of names was asked, in lower case and each name once. */
export function namesAsked(seen: Seen): readonly string[] {
  return [...new Set(seen.questions.map(({ name }) => name.toLowerCase()))];
}

function pagesFolder(folder: string): string {
  return join(folder, "pages");
}

/** Node runs no TypeScript: the program is bundled into the folder first. */
function startIn(folder: string): ChildProcess {
  const program = join(folder, "host.mjs");
  buildSync({
    entryPoints: [join(import.meta.dirname, "host.ts")],
    outfile: program,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    // dns-packet is CommonJS, which a bundled module cannot ask for Node's own modules by itself.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
  });
  // Worlds and ordinary users have no business in here; the repositories are served, not read.
  chmodSync(folder, 0o700);
  const [program0, ...words] = [...makeArgv(), process.execPath, program];
  return spawn(program0, words, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
}

/** Connections that were open before are not of this action. */
function since(before: Seen, after: Seen): Seen {
  return {
    connections: after.connections.slice(before.connections.length),
    datagrams: after.datagrams.slice(before.datagrams.length),
    questions: after.questions.slice(before.questions.length),
    echoes: after.echoes - before.echoes,
  };
}
