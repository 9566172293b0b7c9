/** A broker in this process whose worlds run nothing: what a command would start, the test tells its gate. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installationAt } from "../../../api/serve/installation.ts";
import { assembleBroker } from "../../../api/serve/assemble.ts";
import type { Broker } from "../../../broker/broker.ts";
import { execute } from "../../../broker/journey/execute.ts";
import { homeLayout } from "../../../broker/settings/home.ts";
import type { Outcome } from "../../../broker/model/outcome.ts";
import type { ExecuteRequest, Isolation, Span } from "../../../schemas/generated/types.ts";
import {
  type CommandRun,
  type ExecRequest,
  NO_CHANGES,
  type ProgramGate,
  type ProgramStart,
  type Settled,
  type World,
  type WorldBackend,
  type WorldSpec,
} from "../../../world/backend.ts";

/** What happens instead of a command: it may tell the gate of starts. */
export type Instead = (request: ExecRequest, gate: ProgramGate) => Promise<void>;

const AGENT = "tester";

export class GatedBroker {
  readonly broker: Broker;
  readonly project: string;
  readonly #folder: string;
  readonly #backend: QuietBackend;

  private constructor(broker: Broker, folder: string, project: string, backend: QuietBackend) {
    this.broker = broker;
    this.#folder = folder;
    this.project = project;
    this.#backend = backend;
  }

  static async start(policy: string): Promise<GatedBroker> {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "substrate-gated-")));
    const project = join(folder, "project");
    mkdirSync(join(project, ".git"), { recursive: true });
    mkdirSync(join(folder, "home/policies"), { recursive: true });
    writeFileSync(join(folder, "home/policies/default.yaml"), policy);
    const backend = new QuietBackend();
    const broker = await assembleBroker({
      home: homeLayout(join(folder, "home"), undefined),
      installation: installationAt(join(import.meta.dirname, "../../..")),
      backend,
      host: { PATH: "/usr/bin:/bin" },
      uid: process.getuid?.() ?? 0,
      cwd: project,
      log: { info: () => {}, warn: () => {}, error: () => {} },
    });
    return new GatedBroker(broker, folder, project, backend);
  }

  /** Edits the policy that holds. */
  edit(policy: string): void {
    writeFileSync(join(this.#folder, "home/policies/default.yaml"), policy);
  }

  /** What happens instead of each command from now on. */
  instead(instead: Instead): void {
    this.#backend.instead = instead;
  }

  async run(
    request: Omit<ExecuteRequest, "agent_id" | "cwd">,
    instead: Instead,
    signal: AbortSignal = new AbortController().signal,
  ): Promise<Outcome> {
    this.instead(instead);
    return await execute(this.broker, AGENT, { agent_id: AGENT, cwd: this.project, ...request }, signal);
  }

  /** What stands below a command that ran. */
  linesBelow(outcome: Outcome): readonly Span[] {
    if (outcome.kind !== "ran") throw new Error(`Refused: ${outcome.error.message}`);
    return this.broker.trace.childrenOf(outcome.reply.span_id);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.broker.approvals.close();
    await this.broker.activity.close();
    await this.broker.backend.close();
    this.broker.gateway.close();
    await this.broker.trace.end();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** By its path, with no other name. */
export function startOf(path: string, words: readonly string[]): ProgramStart {
  const real = realpathSync(path);
  const name = path.slice(path.lastIndexOf("/") + 1);
  const file = { called: path, path: real, argv: [name, ...words], same: [] };
  return { pid: 7, folder: null, files: [file], cut: false, unread: null };
}

class QuietBackend implements WorldBackend {
  readonly name = "quiet";
  readonly held = null;
  instead: Instead = () => Promise.resolve();

  filterHash(): null {
    return null;
  }

  probe(): Promise<Isolation> {
    return Promise.resolve(isolationOf("off"));
  }

  start(id: string, spec: WorldSpec): Promise<World> {
    return Promise.resolve(new QuietWorld(id, spec, (request, gate) => this.instead(request, gate)));
  }

  prepare(): null {
    return null;
  }

  async dropHeld(): Promise<void> {}

  expireHeld(): Promise<number> {
    return Promise.resolve(0);
  }

  dropLeft(): Promise<number> {
    return Promise.resolve(0);
  }

  async close(): Promise<void> {}
}

class QuietWorld implements World {
  readonly id: string;
  readonly spec: WorldSpec;
  readonly mountedAt: bigint | null;
  readonly isolation: Isolation;
  readonly pid = 1;
  readonly limits = {};
  readonly mounts = [];
  readonly network = null;
  readonly ended: Promise<string>;
  readonly #instead: Instead;
  #end: (cause: string) => void = () => {};

  constructor(id: string, spec: WorldSpec, instead: Instead) {
    this.id = id;
    this.spec = spec;
    this.#instead = instead;
    const isOverlay = spec.access.kind === "overlay";
    this.mountedAt = isOverlay ? 1n : null;
    this.isolation = isolationOf(isOverlay ? "on" : "off");
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
  }

  settle(): Promise<Settled> {
    return Promise.resolve({ sealed: [], unsealed: [] });
  }

  isSealed(): Promise<boolean> {
    return Promise.resolve(false);
  }

  exec(request: ExecRequest): CommandRun {
    const { gate } = request;
    if (gate === undefined) throw new Error("A command is run without a gate");
    const usage = { cpuMs: null, memoryPeakBytes: null, processes: null };
    const exited = { kind: "exited", code: 0, usage, kept: 0, leftover: false } as const;
    const ending = this.#instead(request, gate).then(() => exited);
    return {
      ending,
      closed: ending.then(() => undefined),
      changes: () => Promise.resolve(NO_CHANGES),
      grant: () => {},
      input: () => {},
      endInput: () => {},
      resize: () => {},
      interrupt: () => {},
      signal: () => {},
      kill: () => {},
      discard: () => {},
    };
  }

  ownerOf(): Promise<null> {
    return Promise.resolve(null);
  }

  processes(): Promise<readonly []> {
    return Promise.resolve([]);
  }

  fsDiff(): Promise<typeof NO_CHANGES> {
    return Promise.resolve(NO_CHANGES);
  }

  takeOut(): string {
    throw new Error("Nothing is made in it");
  }

  strays(): ReturnType<World["strays"]> {
    return Promise.resolve({ paths: [], count: 0 });
  }

  end(cause: string): Promise<void> {
    this.#end(cause);
    return Promise.resolve();
  }
}

function isolationOf(overlay: "on" | "off"): Isolation {
  const off = "off: nothing runs";
  return {
    backend: "quiet",
    user: off,
    mount: off,
    pid: off,
    net: off,
    ipc: off,
    uts: off,
    cgroup: off,
    seccomp: off,
    no_new_privs: off,
    capabilities: off,
    exec_gate: "on",
    overlay,
  };
}
