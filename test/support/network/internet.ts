/** An internet of the test's own, in a network namespace: names, servers, and a witness of all that reaches it. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { buildSync } from "esbuild";
import { makeRepository } from "../git/git.ts";
import type { Pages } from "../registry/pages.ts";
import { type Ended, type RunAsOptions, currentUser, runAs } from "../users/users.ts";
import type { Order, Reply, Seen, SeenConnection, Zone } from "./messages.ts";
import { writePages } from "./pages.ts";
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

export type Certificates = {
  /** The authority's certificate, which clients are told to trust. */
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
};

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];

const AUTHORITY = `[req]
distinguished_name = name
x509_extensions = authority
prompt = no
[name]
CN = Substrate's tests
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
`;

/**
 * Makes an authority of the test's own and a certificate for names (`*.` stands for one label) in a folder.
 * Returns the paths of PEM files. Throws when openssl is not there or refuses.
 */
export async function makeCertificates(folder: string, names: readonly string[]): Promise<Certificates> {
  const path = (name: string): string => join(folder, name);
  writeFileSync(path("authority.conf"), AUTHORITY);
  await openssl([
    ...["req", "-x509", ...NEW_KEY, "-config", path("authority.conf")],
    ...["-keyout", path("authority.key"), "-out", path("authority.pem")],
  ]);
  await openssl([
    ...["req", "-x509", ...NEW_KEY, "-subj", "/CN=substrate-test-server"],
    ...["-CA", path("authority.pem"), "-CAkey", path("authority.key")],
    ...["-addext", `subjectAltName=${names.map((name) => `DNS:${name}`).join(",")}`],
    ...["-addext", "basicConstraints=critical,CA:FALSE"],
    ...["-keyout", path("server.key"), "-out", path("server.pem")],
  ]);
  return { authority: path("authority.pem"), certificate: path("server.pem"), key: path("server.key") };
}

async function openssl(words: readonly string[]): Promise<void> {
  await promisify(execFile)("openssl", words);
}

/**
 * Argument vectors around network namespaces.
 *
 * Root makes a network namespace alone, in which a broker of any user can be started: what enters does so as root and
 * changes its user afterwards. An ordinary user needs a user namespace around it, keeps the capabilities in that to set
 * routes and listen below port 1024, and loses them when a program is started in it later.
 */
export function makeArgv(): [string, ...string[]] {
  return isRoot()
    ? ["unshare", "--net", "--"]
    : ["unshare", "--user", "--map-current-user", "--keep-caps", "--net", "--"];
}

/** @param pid a process in the namespace, which must outlive the start of whatever enters */
export function enterArgv(pid: number): readonly string[] {
  return isRoot()
    ? ["nsenter", `--net=/proc/${pid}/ns/net`, "--"]
    : ["nsenter", `--target=${pid}`, "--user", "--net", "--preserve-credentials", "--"];
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}
