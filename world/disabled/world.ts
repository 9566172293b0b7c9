import { type ChildProcess, spawn } from "node:child_process";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { FsDiff, Isolation } from "../../schemas/generated/types.ts";
import type { Ending, RunUsage } from "../model/endings.ts";
import { NO_CHANGES } from "../model/fs-diff.ts";
import type { CommandRun, ExecRequest, World, WorldSpec } from "../model/world.ts";

/** How long outputs that another process holds open are read after the command's end. */
const DRAIN_MS = 100;

const NOT_MEASURED: RunUsage = { cpuMs: null, memoryPeakBytes: null, processes: null };

const OFF = "off: the world is disabled";

const ISOLATION: Isolation = {
  backend: "off",
  user: OFF,
  mount: OFF,
  pid: OFF,
  net: OFF,
  ipc: OFF,
  uts: OFF,
  cgroup: OFF,
  seccomp: OFF,
  no_new_privs: OFF,
  capabilities: OFF,
  exec_gate: OFF,
  overlay: OFF,
};

/** No world: commands run on the host, as the broker's user. Pipes only; a request with a terminal must not come here. */
export class DisabledWorld implements World {
  readonly id: string;
  readonly spec: WorldSpec;
  readonly mountedAt = null;
  readonly isolation = ISOLATION;
  readonly pid = process.pid;
  readonly limits = {};
  readonly mounts = [];
  readonly network = null;
  readonly ended: Promise<string>;
  readonly #runs = new Set<HostRun>();
  #end: (cause: string) => void = () => {};

  constructor(id: string, project: string, identity: string) {
    this.id = id;
    this.ended = new Promise((resolve) => {
      this.#end = resolve;
    });
    // Nothing is hidden and nothing sealed: whoever reads the lists learns that every path may be written.
    const files = { read: ["/**"], denyRead: [], write: ["/**"], denyWrite: [], seal: [] };
    this.spec = {
      ...{ project, identity, access: { kind: "direct" }, files, hidden: [], sealed: [], limits: {} },
      ...{ seccomp: "enforce", network: { ports: [], ranges: [] } },
    };
  }

  exec(request: ExecRequest): CommandRun {
    const run = new HostRun(request);
    this.#runs.add(run);
    void run.closed.then(() => this.#runs.delete(run));
    return run;
  }

  ownerOf(): Promise<null> {
    return Promise.resolve(null);
  }

  processes(): Promise<readonly []> {
    return Promise.resolve([]);
  }

  fsDiff(): Promise<FsDiff> {
    return Promise.resolve(NO_CHANGES);
  }

  takeOut(path: string): string {
    throw new Error(`'${path}' is a person's: no world was there to keep it out`);
  }

  isSealed(): Promise<boolean> {
    return Promise.resolve(false);
  }

  settle(): Promise<{ readonly sealed: readonly []; readonly unsealed: readonly [] }> {
    return Promise.resolve({ sealed: [], unsealed: [] });
  }

  strays(): Promise<{ readonly paths: readonly []; readonly count: 0 }> {
    return Promise.resolve({ paths: [], count: 0 });
  }

  end(cause: string): Promise<void> {
    for (const run of this.#runs) run.kill();
    this.#end(cause);
    return Promise.resolve();
  }
}

/** Node gives a child no pipe twice; a shell does. */
const ONE_OUTPUT = ["/bin/sh", "-c", 'exec "$@" 2>&1', "sh"];

/** Node starts a child with its own file mode creation mask. The mask and the program follow. */
const WITH_UMASK = ["/bin/sh", "-c", 'umask "$1"; shift; exec "$@"', "sh"];

class HostRun implements CommandRun {
  readonly ending: Promise<Ending>;
  readonly closed: Promise<void>;
  readonly #request: ExecRequest;
  readonly #child: ChildProcess;
  readonly #outputs: readonly [Output, Output];

  constructor(request: ExecRequest) {
    const { argv, cwd, env, live, stdin, background, umask } = request;
    const [program = "", ...words] = [
      ...(umask === undefined ? [] : [...WITH_UMASK, umask.toString(8)]),
      ...(request.isOneOutput === true ? ONE_OUTPUT : []),
      ...argv,
    ];
    this.#request = request;
    const hasInput = live !== undefined || stdin !== undefined;
    // A session of its own, as in a world: no terminal of the broker's, and a group that can be ended as a whole.
    const child = spawn(program, words, {
      ...{ cwd, env, detached: true, argv0: program },
      stdio: [hasInput ? "pipe" : "ignore", "pipe", "pipe"],
    });
    this.#child = child;
    const credit = { left: request.window };
    const output = (name: "stdout" | "stderr", from: Readable): Output =>
      new Output(from, credit, (bytes) => request.onOutput(name, bytes));
    this.#outputs = [output("stdout", child.stdout as Readable), output("stderr", child.stderr as Readable)];
    child.stdin?.on("error", () => {
      // The command reads no more, ignoring: as a pipe's writer that ignores SIGPIPE.
    });
    if (live === undefined && stdin !== undefined) child.stdin?.end(stdin);
    const read = Promise.all(this.#outputs.map(({ over }) => over));
    this.ending = this.#ended().then(async (ending) => {
      if (background === "kill") this.kill();
      await Promise.race([read, sleep(DRAIN_MS)]);
      return ending;
    });
    this.closed = Promise.all([this.ending, read]).then(() => {});
  }

  changes(): Promise<FsDiff> {
    return Promise.resolve({
      ...NO_CHANGES,
      truncated: true,
      summary: "changes are not recorded without a world",
    });
  }

  grant(bytes: number): void {
    const [stdout, stderr] = this.#outputs;
    stdout.grant(bytes);
    stderr.grant(0);
  }

  input(bytes: Uint8Array): void {
    const { length } = bytes;
    const taken = (): void => this.#request.live?.onTaken(length);
    const { stdin } = this.#child;
    if (stdin === null || stdin.destroyed || stdin.writableEnded) return taken();
    stdin.write(Buffer.from(bytes), taken);
  }

  endInput(): void {
    this.#child.stdin?.end();
  }

  resize(): void {
    // No terminal.
  }

  interrupt(name: NodeJS.Signals): void {
    this.signal(name);
  }

  signal(name: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, name);
    } catch {
      // The group is gone already.
    }
  }

  kill(): void {
    this.signal("SIGKILL");
  }

  discard(): void {
    for (const output of this.#outputs) output.discard();
  }

  #ended(): Promise<Ending> {
    const child = this.#child;
    return new Promise((resolve) => {
      child.once("error", (error: NodeJS.ErrnoException) => {
        const path = this.#request.argv[0] ?? "";
        resolve({ kind: "not_started", step: "execve", path, errno: error.code ?? "EIO" });
        this.discard();
      });
      child.once("exit", (code, signal) => {
        const rest = { usage: NOT_MEASURED, kept: 0, leftover: false };
        resolve(
          signal === null
            ? { kind: "exited", code: code ?? 255, ...rest }
            : { kind: "signalled", signal, ...rest },
        );
      });
    });
  }
}

/** Reads a stream as far as the credit goes, which both outputs of a command share. */
class Output {
  readonly over: Promise<void>;
  readonly #from: Readable;
  readonly #credit: { left: number };
  readonly #push: (bytes: Uint8Array) => void;
  #isDiscarded = false;

  constructor(from: Readable, credit: { left: number }, push: (bytes: Uint8Array) => void) {
    this.#from = from;
    this.#credit = credit;
    this.#push = push;
    this.over = new Promise((resolve) => {
      from
        .once("end", resolve)
        .once("close", resolve)
        .once("error", () => resolve());
    });
    from.on("readable", () => this.#read());
  }

  grant(bytes: number): void {
    this.#credit.left += bytes;
    this.#read();
  }

  discard(): void {
    this.#isDiscarded = true;
    this.#from.resume();
  }

  #read(): void {
    if (this.#isDiscarded) return;
    while (this.#credit.left > 0) {
      const bytes = this.#from.read(
        Math.min(this.#credit.left, this.#from.readableLength || 1),
      ) as Buffer | null;
      if (bytes === null) return;
      this.#credit.left -= bytes.length;
      this.#push(bytes);
    }
  }
}
