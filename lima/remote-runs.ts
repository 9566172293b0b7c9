/** The running commands of one connection, by number: their reports, and their questions to the broker. */
import type { FsDiff } from "../schemas/generated/types.ts";
import {
  type CommandRun,
  type Ending,
  type ExecRequest,
  NO_CHANGES,
  type TerminalSize,
} from "../world/backend.ts";
import type { Answers, Hears } from "../world/wire/peer.ts";
import { type BrokerCalls, type BrokerTells, BYTES, type Exec } from "../world/wire/protocol.ts";
import type { ToAgent } from "./agent-connection.ts";
import { belowProject, type Ground, inProject, OutOfProject } from "./agent-messages.ts";

type RunAnswers = Omit<Answers<BrokerCalls>, "mayHold" | "isDenied">;
type RunHears = Omit<Hears<BrokerTells>, "isolation" | "ended" | "captured" | "datagram" | "dnsStream">;

const NO_JUDGE = "No command waits for this judgement";

/** Numbers of runs are u32 on the wire. */
const MOST_NUMBER = 0xffff_ffff;

export class RemoteRuns {
  readonly #runs = new Map<number, RemoteRun>();
  #peer: ToAgent | undefined;
  #loss: string | undefined;
  #last = 0;

  attach(peer: ToAgent): void {
    this.#peer = peer;
  }

  of(run: number): RemoteRun | undefined {
    return this.#runs.get(run);
  }

  /** Starts a command in a world, unless the world or the connection is lost. */
  exec(world: string, ground: Ground, request: ExecRequest, loss: string | undefined): CommandRun {
    do this.#last = (this.#last % MOST_NUMBER) + 1;
    while (this.#runs.has(this.#last));
    const number = this.#last;
    const run = new RemoteRun(number, ground, request, this.#peer);
    const lost = loss ?? this.#loss;
    if (lost !== undefined) {
      run.lose(lost);
      return run;
    }
    this.#runs.set(number, run);
    this.#peer?.tell("exec", execOf(number, world, request));
    return run;
  }

  output(number: number, stream: "stdout" | "stderr", bytes: Buffer): void {
    this.#runs.get(number)?.request.onOutput(stream, bytes);
  }

  lose(cause: string): void {
    this.#loss = cause;
    for (const run of this.#runs.values()) run.lose(cause);
    this.#runs.clear();
  }

  /** A question about an unknown run is answered no. */
  answers(): RunAnswers {
    return {
      decide: async ({ run, question, start }) => {
        const gate = this.#runs.get(run)?.request.gate;
        return (
          (await gate?.decide(start, (ms) => this.#peer?.tell("wait", { question, ms: Math.ceil(ms) }))) ===
          true
        );
      },
      judge: async ({ run, replacement }) => {
        const asked = this.#runs.get(run);
        if (asked?.request.replacements === undefined) throw new Error(NO_JUDGE);
        inProject(asked.ground, replacement.path);
        return (await asked.request.replacements.judge(replacement)) ?? null;
      },
      accepted: async ({ run, path, file, content }) => {
        const asked = this.#runs.get(run);
        if (asked?.request.replacements === undefined) throw new Error(NO_JUDGE);
        await asked.request.replacements.accepted(inProject(asked.ground, path), file, content);
        return null;
      },
      mayRemove: async ({ run, path }) =>
        (await this.#runs.get(run)?.request.removals?.mayRemove(path)) === true,
      mayMove: async ({ run, folder }) =>
        (await this.#runs.get(run)?.request.removals?.mayMove(folder)) === true,
    };
  }

  hears(): RunHears {
    const request = (run: number): ExecRequest | undefined => this.#runs.get(run)?.request;
    return {
      ending: ({ run, ending }) => this.#runs.get(run)?.end(ending),
      closed: ({ run }) => {
        this.#runs.get(run)?.close();
        this.#runs.delete(run);
      },
      violation: ({ run, violation }) => request(run)?.onViolation(violation),
      taken: ({ run, bytes }) => request(run)?.live?.onTaken(bytes),
      stopped: ({ run, signal }) => request(run)?.live?.onStopped?.(signal),
      state: ({ run, content }) => request(run)?.stateFile?.onState(content),
      brought: ({ run, folder }) => this.#runs.get(run)?.brought(folder),
      sealed: ({ run, path }) => this.#runs.get(run)?.sealed(path),
      programs: ({ run, events, untold }) => request(run)?.onPrograms?.(events, untold),
      telemetry: ({ run, report }) => request(run)?.onTelemetry?.(report),
    };
  }
}

class RemoteRun implements CommandRun {
  readonly ending: Promise<Ending>;
  readonly closed: Promise<void>;
  readonly request: ExecRequest;
  readonly ground: Ground;
  readonly #run: number;
  readonly #peer: ToAgent | undefined;
  end: (ending: Ending) => void = () => {};
  close: () => void = () => {};

  constructor(run: number, ground: Ground, request: ExecRequest, peer: ToAgent | undefined) {
    this.#run = run;
    this.ground = ground;
    this.request = request;
    this.#peer = peer;
    this.ending = new Promise((resolve) => {
      this.end = resolve;
    });
    this.closed = new Promise((resolve) => {
      this.close = resolve;
    });
  }

  lose(cause: string): void {
    this.end({ kind: "world_lost", cause });
    this.close();
  }

  brought(folder: string): void {
    this.request.onBrought?.(inProject(this.ground, folder));
  }

  sealed(path: string): void {
    this.request.onSealed?.(inProject(this.ground, path));
  }

  async changes(signal: AbortSignal): Promise<FsDiff> {
    try {
      if (this.#peer === undefined) throw new Error("The world agent is not connected");
      return belowProject(await this.#peer.call("changes", { run: this.#run }, signal));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      if (error instanceof OutOfProject) this.#peer?.close(why);
      return { ...NO_CHANGES, truncated: true, summary: `the changes are not known: ${why}` };
    }
  }

  grant(bytes: number): void {
    this.#peer?.tell("grant", { run: this.#run, bytes });
  }

  input(bytes: Uint8Array): void {
    this.#peer?.bytes(BYTES.input, this.#run, bytes);
  }

  endInput(): void {
    this.#peer?.tell("endInput", { run: this.#run });
  }

  resize(size: TerminalSize): void {
    this.#peer?.tell("resize", { run: this.#run, size });
  }

  interrupt(name: NodeJS.Signals): void {
    this.#peer?.tell("interrupt", { run: this.#run, name });
  }

  signal(name: NodeJS.Signals): void {
    this.#peer?.tell("signal", { run: this.#run, name });
  }

  kill(): void {
    this.#peer?.tell("kill", { run: this.#run });
  }

  discard(): void {
    this.#peer?.tell("discard", { run: this.#run });
  }
}

function execOf(run: number, world: string, request: ExecRequest): Exec {
  const { argv, cwd, env, stdin, live, memoryFile, stateFile, background, window, gate } = request;
  return {
    ...{ run, world, argv, cwd, background, window },
    env: Object.entries(env),
    stdin: live === undefined ? (stdin ?? null) : null,
    live:
      live === undefined ? null : { terminal: live.terminal ?? null, isJob: live.onStopped !== undefined },
    isOneOutput: request.isOneOutput === true,
    umask: request.umask ?? null,
    memoryFile: memoryFile ?? null,
    stateFile: stateFile === undefined ? null : { path: stateFile.path, script: stateFile.script },
    gate:
      gate === undefined
        ? null
        : {
            ...{ names: gate.names, all: gate.all, refuses: gate.refuses },
            ...(gate.folders === undefined ? {} : { folders: gate.folders }),
          },
    listens: {
      replacements: request.replacements !== undefined,
      removals: request.removals !== undefined,
      onBrought: request.onBrought !== undefined,
      onSealed: request.onSealed !== undefined,
      onPrograms: request.onPrograms !== undefined,
      onTelemetry: request.onTelemetry !== undefined,
    },
  };
}
