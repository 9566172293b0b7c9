/** The commands of one broker: a message becomes a request, and what the command asks or reports becomes messages. */
import type { FsDiff, Isolation } from "../../schemas/generated/types.ts";
import type { ProgramGate } from "../model/programs.ts";
import type { CommandRun, ExecRequest, RemovalJudge, ReplacementJudge, World } from "../model/world.ts";
import { BYTES, type Exec } from "../wire/protocol.ts";
import type { ToBroker } from "./session.ts";

/** How long the changes of a command that is over can be asked for: a broker asks at once. */
const CHANGES_MS = 60_000;

type Running = { readonly run: CommandRun; readonly world: World };

export class AgentRuns {
  readonly #peer: ToBroker;
  readonly #running = new Map<number, Running>();
  readonly #numbers = new Map<CommandRun, number>();
  /** Extensions of starts under decision. */
  readonly #waits = new Map<number, (ms: number) => void>();
  readonly #isolation = new Map<World, Isolation>();
  #questions = 0;

  constructor(peer: ToBroker) {
    this.#peer = peer;
  }

  /** Undefined for a run that is over: its last messages cross those of the broker. */
  of(run: number): CommandRun | undefined {
    return this.#running.get(run)?.run;
  }

  numberOf(run: CommandRun): number | undefined {
    return this.#numbers.get(run);
  }

  input(run: number, bytes: Buffer): void {
    // A copy: the message's memory is reused, and the world may keep the bytes until its channel takes them.
    this.of(run)?.input(Buffer.from(bytes));
  }

  wait(question: number, ms: number): void {
    this.#waits.get(question)?.(ms);
  }

  async changes(run: number, signal: AbortSignal): Promise<FsDiff> {
    const found = this.of(run);
    if (found === undefined) throw new Error(`No run ${run}`);
    return await found.changes(signal);
  }

  /** Resolves when no command runs in the world, or at the latest with `late`. */
  async idle(world: World, late: AbortSignal): Promise<void> {
    const closed = [...this.#running.values()]
      .filter((each) => each.world === world)
      .map(({ run }) => run.closed);
    const over = new Promise<void>((resolve) => {
      if (late.aborted) resolve();
      late.addEventListener("abort", () => resolve(), { once: true });
    });
    await Promise.race([Promise.all(closed), over]);
  }

  /** Tells the isolation vector if it has changed. */
  tellIsolation(world: World): void {
    const { isolation } = world;
    const known = this.#isolation.get(world);
    if (known === isolation) return;
    this.#isolation.set(world, isolation);
    if (known === undefined) void world.ended.then(() => this.#isolation.delete(world));
    this.#peer.tell("isolation", { world: world.id, isolation });
  }

  exec(world: World, exec: Exec): void {
    const { run: number } = exec;
    const peer = this.#peer;
    try {
      const run = world.exec(this.#requestOf(exec));
      this.#running.set(number, { run, world });
      this.#numbers.set(run, number);
      void run.ending.then((ending) => {
        this.tellIsolation(world);
        peer.tell("ending", { run: number, ending });
      });
      void run.closed.then(() => {
        peer.tell("closed", { run: number });
        setTimeout(() => this.#forget(number, run), CHANGES_MS).unref();
      });
    } catch (error) {
      const step = error instanceof Error ? error.message : String(error);
      peer.tell("ending", {
        run: number,
        ending: { kind: "not_started", step, path: exec.argv[0] ?? "", errno: "E2BIG" },
      });
      peer.tell("closed", { run: number });
    }
  }

  /** Ends a run whose world is gone. */
  lose(run: number, cause: string): void {
    this.#peer.tell("ending", { run, ending: { kind: "world_lost", cause } });
    this.#peer.tell("closed", { run });
  }

  #forget(number: number, run: CommandRun): void {
    this.#running.delete(number);
    this.#numbers.delete(run);
  }

  #requestOf(exec: Exec): ExecRequest {
    const { run, argv, cwd, env, stdin, live, memoryFile, stateFile, background, window, gate, listens } =
      exec;
    const peer = this.#peer;
    return {
      argv,
      cwd,
      env: Object.fromEntries(env),
      stdin: stdin ?? undefined,
      live:
        live === null
          ? undefined
          : {
              terminal: live.terminal ?? undefined,
              onTaken: (bytes) => peer.tell("taken", { run, bytes }),
              onStopped: live.isJob ? (signal) => peer.tell("stopped", { run, signal }) : undefined,
            },
      isOneOutput: exec.isOneOutput,
      umask: exec.umask ?? undefined,
      memoryFile: memoryFile ?? undefined,
      stateFile:
        stateFile === null
          ? undefined
          : { ...stateFile, onState: (content) => peer.tell("state", { run, content }) },
      background,
      window,
      onOutput: (stream, bytes) => peer.bytes(BYTES[stream], run, bytes),
      onViolation: (violation) => peer.tell("violation", { run, violation }),
      gate: gate === null ? undefined : this.#gate(run, gate),
      replacements: listens.replacements ? this.#replacements(run) : undefined,
      removals: listens.removals ? this.#removals(run) : undefined,
      onBrought: listens.onBrought ? (folder) => peer.tell("brought", { run, folder }) : undefined,
      onSealed: listens.onSealed ? (path) => peer.tell("sealed", { run, path }) : undefined,
      onPrograms: listens.onPrograms
        ? (events, untold) => peer.tell("programs", { run, events, untold })
        : undefined,
      onTelemetry: listens.onTelemetry ? (report) => peer.tell("telemetry", { run, report }) : undefined,
    };
  }

  #gate(run: number, gate: Omit<ProgramGate, "decide">): ProgramGate {
    return {
      ...gate,
      decide: async (start, wait) => {
        this.#questions += 1;
        const question = this.#questions;
        this.#waits.set(question, wait);
        try {
          return (await this.#peer.call("decide", { run, question, start })) === true;
        } catch {
          // The broker is gone or failed, ignoring: no answer is a no.
          return false;
        } finally {
          this.#waits.delete(question);
        }
      },
    };
  }

  #replacements(run: number): ReplacementJudge {
    return {
      judge: async (replacement) => (await this.#peer.call("judge", { run, replacement })) ?? undefined,
      accepted: async (path, { dev, ino, size, mtimeNs }, content) => {
        await this.#peer.call("accepted", { run, path, file: { dev, ino, size, mtimeNs }, content });
      },
    };
  }

  #removals(run: number): RemovalJudge {
    const no = (): boolean => false;
    return {
      mayRemove: (path) => this.#peer.call("mayRemove", { run, path }).catch(no),
      mayMove: (folder) => this.#peer.call("mayMove", { run, folder }).catch(no),
    };
  }
}
