/** A real broker for a test: its own home, its own project, a user of the test's choice, nothing left behind. */
import { type ChildProcess, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Answer, call } from "../../../api/client/client.ts";
import { homeLayout } from "../../../broker/settings/home.ts";
import type { ErrorReply, ExecuteReply, Span, TraceReply } from "../../../schemas/generated/types.ts";
import { type Actor, type Ended, runAs, spawnAs } from "../users/users.ts";
import { installationFor, type TestInstallation } from "./installation.ts";
import { removeTrees } from "../users/folders.ts";

export type BrokerOptions = {
  /** Policies by name; `default` replaces the shipped one. */
  readonly policies?: Readonly<Record<string, string>>;
  /** The text of config.yaml. */
  readonly config?: string;
  /** Variables of the broker beyond SUBSTRATE_HOME. */
  readonly environment?: Readonly<Record<string, string>>;
  /** A folder of the actor's to hold the home and the project, instead of one below /tmp: removed at the end. */
  readonly folder?: string;
  /** Words before the broker's own, and before the change to its user: `TestInternet.enter`. */
  readonly within?: readonly string[];
  /** What starts the broker instead of its being started directly: the broker's own words follow. */
  readonly wrap?: (folder: string) => readonly string[];
  /** Another installation than the suite's own. */
  readonly installation?: TestInstallation;
};

/** Beside a fork bomb of the same user, in another file, a start took more than 20 s. */
const READY_MS = 50_000;
export const ROOT_OVERLAY = "/var/lib/substrate/overlay";

export class TestBroker {
  readonly actor: Actor;
  readonly folder: string;
  readonly home: string;
  readonly project: string;
  readonly process: ChildProcess;
  readonly #launcher: readonly string[];
  readonly #options: BrokerOptions;

  private constructor(
    actor: Actor,
    folder: string,
    process: ChildProcess,
    launcher: readonly string[],
    options: BrokerOptions,
  ) {
    this.actor = actor;
    this.folder = folder;
    this.home = join(folder, "home");
    this.project = join(folder, "project");
    this.process = process;
    this.#launcher = launcher;
    this.#options = options;
  }

  static async start(actor: Actor, options: BrokerOptions = {}): Promise<TestBroker> {
    const folder = prepareFolder(actor, options);
    return await TestBroker.#startIn(actor, folder, options);
  }

  /** Starts a broker on the same home, after this broker has ended. @param environment replaces the variables of this broker */
  async again(environment = this.#options.environment ?? {}): Promise<TestBroker> {
    return await TestBroker.#startIn(this.actor, this.folder, { ...this.#options, environment });
  }

  static async #startIn(actor: Actor, folder: string, options: BrokerOptions): Promise<TestBroker> {
    const { node, launcher } = options.installation ?? (await installationFor(actor));
    const words = [node, launcher];
    const process = spawnAs(
      actor,
      [...(options.wrap?.(folder) ?? []), ...words, "broker", "start", "--foreground"],
      {
        cwd: join(folder, "project"),
        env: { ...options.environment, SUBSTRATE_HOME: join(folder, "home") },
        stdio: ["ignore", "ignore", "inherit"],
        within: options.within ?? [],
      },
    );
    const broker = new TestBroker(actor, folder, process, words, options);
    try {
      await broker.#untilReady();
    } catch (error) {
      process.kill("SIGTERM");
      throw error;
    }
    return broker;
  }

  call(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Answer> {
    return call(join(this.home, "sock/agent.sock"), method, path, body, signal);
  }

  operator(method: string, path: string, body?: unknown): Promise<Answer> {
    return call(join(this.home, "sock/control.sock"), method, path, body);
  }

  post(body: Readonly<Record<string, unknown>>, signal?: AbortSignal): Promise<Answer> {
    return this.call("POST", "/v1/execute", { agent_id: "test", cwd: this.project, ...body }, signal);
  }

  /** Runs a command that must be answered with 200. */
  async run(body: Readonly<Record<string, unknown>> | string): Promise<Ran> {
    const answer = await this.post(typeof body === "string" ? { cmd: body } : body);
    if (answer.status !== 200)
      throw new Error(`Expected 200, received ${answer.status}: ${JSON.stringify(answer.document)}`);
    const reply = answer.document as ExecuteReply;
    return { ...reply, stdout: text(reply.stdout_b64), stderr: text(reply.stderr_b64) };
  }

  /** Runs a command that must be refused. */
  async refused(
    body: Readonly<Record<string, unknown>>,
  ): Promise<{ readonly status: number } & ErrorReply["error"]> {
    const answer = await this.post(body);
    if (answer.status === 200)
      throw new Error(`Expected a refusal, received ${JSON.stringify(answer.document)}`);
    return { status: answer.status, ...(answer.document as ErrorReply).error };
  }

  async span(id: string): Promise<Span> {
    const answer = await this.operator("GET", `/v1/trace/${id}`);
    if (answer.status !== 200)
      throw new Error(`Expected the span ${id}, received ${JSON.stringify(answer.document)}`);
    return (answer.document as TraceReply).span;
  }

  cli(
    words: readonly string[],
    options: {
      readonly stdin?: string;
      readonly env?: Readonly<Record<string, string>>;
      readonly cwd?: string;
    } = {},
  ): Promise<Ended> {
    return runAs(this.actor, [...this.#launcher, ...words], {
      cwd: options.cwd ?? this.project,
      env: { SUBSTRATE_HOME: this.home, ...options.env },
      stdin: options.stdin ?? "",
    });
  }

  /** Writes a file as the actor's own, with all that the test made beside the home: in that the broker is at work. */
  write(path: string, content: string): void {
    const made = mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
    const others = readdirSync(this.folder).filter((name) => name !== "home");
    own(this.actor, made ?? path, ...others.map((name) => join(this.folder, name)));
  }

  /** Every whole line of the trace, from the oldest of its files to the live one, which the broker may be writing. */
  spans(): readonly Span[] {
    const folder = join(this.home, "trace");
    for (;;) {
      const [old, live] = [rotated(folder), join(folder, "trace.jsonl")];
      // Between the two steps of a rotation there is none.
      const last = existsSync(live) ? readFileSync(live, "utf8") : "";
      if (rotated(folder).length !== old.length) continue;
      const texts = [...old.map((name) => readFileSync(join(folder, name), "utf8")), last];
      return texts.flatMap((text) =>
        text
          .slice(0, text.lastIndexOf("\n") + 1)
          .split("\n")
          .filter(Boolean)
          .map((line) => JSON.parse(line) as Span),
      );
    }
  }

  /** Processes of this broker's worlds that the host still sees: those that descend from it, or from its inits. */
  async kill(signal: NodeJS.Signals): Promise<void> {
    const gone = this.#gone();
    const pid = this.#pid();
    if (pid !== undefined) process.kill(pid, signal);
    await gone;
  }

  /** Stops the broker and removes everything of this test. */
  async stop(): Promise<void> {
    await this.kill("SIGTERM");
    const overlay = this.actor.uid === 0 ? [homeLayout(this.home, ROOT_OVERLAY).overlay] : [];
    removeTrees(this.folder, ...overlay);
  }

  /** The broker's own pid: `setpriv` becomes the program, so it is the child's. */
  #pid(): number | undefined {
    return this.process.exitCode === null && this.process.signalCode === null ? this.process.pid : undefined;
  }

  #gone(): Promise<void> {
    if (this.#pid() === undefined) return Promise.resolve();
    return new Promise((resolve) => this.process.once("exit", () => resolve()));
  }

  async #untilReady(): Promise<void> {
    for (const end = Date.now() + READY_MS; ; ) {
      try {
        await this.call("GET", "/v1/spans");
        return;
      } catch (error) {
        if (Date.now() > end || this.#pid() === undefined)
          throw new Error("The broker did not become ready", { cause: error });
        await sleep(25);
      }
    }
  }
}

export type Ran = ExecuteReply & { readonly stdout: string; readonly stderr: string };

function prepareFolder(actor: Actor, options: BrokerOptions): string {
  const folder = options.folder ?? mkdtempSync(join(actor.uid === 0 ? tmpdir() : actor.home, "sb-"));
  chmodSync(folder, 0o755);
  for (const name of ["home/policies", "project"]) mkdirSync(join(folder, name), { recursive: true });
  for (const [name, text] of Object.entries(options.policies ?? {}))
    writeFileSync(join(folder, "home/policies", `${name}.yaml`), text);
  writeFileSync(join(folder, "home/config.yaml"), settings(folder, options.config));
  own(actor, folder);
  return folder;
}

/**
 * The settings of a broker whose projects have no mark: below `/tmp` such a folder is a project only where it is listed. Projects
 * may lie anywhere, as without any list. A test with a list of its own says all of it.
 */
export function settings(folder: string, config = ""): string {
  if (/^projects:/m.test(config)) return config;
  return `projects: ["/", "${folder}"]\n${config}`;
}

function rotated(folder: string): readonly string[] {
  return readdirSync(folder)
    .filter((name) => /^trace-\d+\.jsonl$/.test(name))
    .sort();
}

function own(actor: Actor, ...paths: readonly string[]): void {
  if (actor.uid === process.getuid?.()) return;
  const changed = spawnSync("chown", ["-Rh", `${actor.uid}:${actor.gid}`, ...paths]);
  if (changed.status !== 0)
    throw new Error(`Cannot give '${paths.join("', '")}' to '${actor.name}': ${changed.stderr.toString()}`);
}

function text(base64: string): string {
  return Buffer.from(base64, "base64").toString("utf8");
}

/** Waits until `holds` does, at most `ms`; returns whether it did. */
export async function eventually(holds: () => boolean | Promise<boolean>, ms: number): Promise<boolean> {
  for (const end = Date.now() + ms; Date.now() < end; await sleep(20)) if (await holds()) return true;
  return await holds();
}
