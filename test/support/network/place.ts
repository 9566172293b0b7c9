/** A broker that dials from the tests' internet, and what clients in its worlds need. */
import { join } from "node:path";
import type { Actor } from "../users/users.ts";
import { type BrokerOptions, type Ran, TestBroker } from "../broker/broker.ts";
import { ASK, type Over } from "./ask.ts";
import { DIAL, type Dialled, readDialled } from "./dial.ts";
import { TestInternet } from "./internet.ts";
import type { Seen, Zone } from "./messages.ts";
import { RESOLVER } from "./zone.ts";

export type PolicyOptions = {
  /** Seconds until a name is resolved anew. */
  readonly refresh?: number;
  /** Further lines of YAML below `net:`, indented by two. */
  readonly net?: string;
  /** Further lines of YAML. */
  readonly more?: string;
  readonly mode?: "enforce" | "observe";
};

/** A policy that lets names through, and asks the internet's own resolver. */
export function networkPolicy(allowed: readonly string[], options: PolicyOptions = {}): string {
  const { refresh = 1, net = "", more = "", mode = "enforce" } = options;
  return `id: default
name: Network
mode: ${mode}
net:
  allowed: ${JSON.stringify(allowed)}
  dns: { servers: ["${RESOLVER}"], refresh_secs: ${refresh} }
${net}
${more}`;
}

export class NetworkPlace {
  readonly internet: TestInternet;
  readonly broker: TestBroker;

  private constructor(internet: TestInternet, broker: TestBroker) {
    this.internet = internet;
    this.broker = broker;
  }

  /** An internet and a broker in it. The project has the clients `dial.py` and `ask.py`. */
  static async open(
    actor: Actor,
    policies: Readonly<Record<string, string>>,
    zone?: Zone,
  ): Promise<NetworkPlace> {
    const internet = await TestInternet.open(zone === undefined ? {} : { zone });
    try {
      return await NetworkPlace.in(internet, actor, policies);
    } catch (error) {
      await internet.close();
      throw error;
    }
  }

  /** Another broker in an internet, whose end is its opener's. */
  static async in(
    internet: TestInternet,
    actor: Actor,
    policies: Readonly<Record<string, string>>,
    options: Pick<BrokerOptions, "wrap"> = {},
  ): Promise<NetworkPlace> {
    const broker = await TestBroker.start(actor, { ...options, policies, within: internet.enter });
    const files = { "ca.pem": internet.authority, "dial.py": DIAL, "ask.py": ASK };
    for (const [name, text] of Object.entries(files)) broker.write(join(broker.project, name), text);
    return new NetworkPlace(internet, broker);
  }

  /** Runs a command whose clients trust the internet's authority. */
  run(cmd: string): Promise<Ran> {
    const path = join(this.broker.project, "ca.pem");
    const trust = {
      SSL_CERT_FILE: path,
      CURL_CA_BUNDLE: path,
      NODE_EXTRA_CA_CERTS: path,
      GIT_SSL_CAINFO: path,
    };
    return this.broker.run({ cmd, env: trust, timeout_ms: 50_000 });
  }

  /** Runs a command and says what the servers saw of it. */
  during(cmd: string): Promise<{ readonly result: Ran; readonly seen: Seen }> {
    return this.internet.during(() => this.run(cmd));
  }

  /** Dials each `ADDRESS PORT` from inside, in turn. */
  async dial(
    targets: readonly string[],
  ): Promise<{ readonly dialled: readonly Dialled[]; readonly seen: Seen }> {
    const { result, seen } = await this.during(["python3 dial.py", ...quoted(targets)].join(" "));
    if (result.exit !== 0) throw new Error(`The client failed: ${result.stderr}`);
    return { dialled: readDialled(result.stdout), seen };
  }

  /** Asks a server of names from inside: a line for each `NAME TYPE`, as `ask.ts` says. */
  async ask(
    over: Over,
    server: string,
    questions: readonly string[],
  ): Promise<{ readonly answers: readonly string[]; readonly seen: Seen; readonly ms: number }> {
    const { result, seen } = await this.during(
      ["python3 ask.py", over, server, ...quoted(questions)].join(" "),
    );
    if (result.exit !== 0) throw new Error(`The client failed: ${result.stderr}`);
    return { answers: result.stdout.trim().split("\n"), seen, ms: result.duration_ms };
  }

  async close(): Promise<void> {
    try {
      await this.broker.stop();
    } finally {
      await this.internet.close();
    }
  }
}

/** Each `A B` is two words for the shell. */
function quoted(pairs: readonly string[]): readonly string[] {
  return pairs.flatMap((pair) => pair.split(" ")).map((word) => `'${word}'`);
}
