/** Runs a command in a world, from its start to the first ending. */
import type {
  CommandRun,
  Ending,
  ExecRequest,
  MemoryFile,
  StateFile,
  ProgramGate,
  World,
  WorldViolation,
} from "../../world/backend.ts";
import type { Live } from "../model/live.ts";
import type { OutputShare } from "./output-room.ts";
import { BoundedOutput } from "./output.ts";

/** Output bytes in flight; after half of the window, the used bytes are granted again in a frame. */
const WINDOW = 512 * 1024;

/** Milliseconds from SIGTERM to SIGKILL of the whole tree: tests remove what they made, databases write what they hold. */
const GRACE_MS = 2000;

/** Milliseconds from SIGKILL to giving up output that nobody takes. */
const DISCARD_MS = 1000;

/** Milliseconds from then to ending the world. */
const LAST_RESORT_MS = 5000;

/** How long a reply waits for outputs held open by background processes. */
const DRAIN_MS = 100;

export type RunRequest = {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly memoryFile?: MemoryFile | undefined;
  readonly stateFile?: StateFile | undefined;
  readonly stdin: Uint8Array | undefined;
  /** Takes the outputs as they come, and may send input; absent: the outputs are only kept. */
  readonly live?: Live | undefined;
  /** Whether standard error is standard output's pipe. */
  readonly isOneOutput?: boolean;
  readonly umask?: number | undefined;
  readonly background: "kill" | "keep";
  readonly timeoutMs: number;
  /** Called when the time is over: returns additional milliseconds, or 0 to end the command. Absent: no extension. */
  readonly more?: () => number;
  readonly maxOutputBytes: number;
  /** The room for output beyond one window. */
  readonly room: OutputShare;
  /** Decides about each started program. */
  readonly gate: ProgramGate;
  readonly onViolation: (violation: WorldViolation) => void;
  /** Called at once, before the command can have any effect. */
  readonly onRun?: (run: CommandRun) => void;
  readonly onPrograms?: ExecRequest["onPrograms"];
  readonly onTelemetry?: ExecRequest["onTelemetry"];
  readonly replacements?: ExecRequest["replacements"];
  readonly removals?: ExecRequest["removals"];
  readonly onBrought?: ExecRequest["onBrought"];
  readonly onSealed?: ExecRequest["onSealed"];
};

export type Ran = {
  readonly run: CommandRun;
  readonly ending: Ending;
  readonly timedOut: boolean;
  readonly cancelled: boolean;
  readonly stdout: BoundedOutput;
  readonly stderr: BoundedOutput;
  readonly durationMs: number;
};

/**
 * Runs a command. Resolves after the command's end, by itself, by its time-out, or by `signal` when the caller has disconnected.
 */
export async function runInWorld(world: World, request: RunRequest, signal: AbortSignal): Promise<Ran> {
  const stdout = new BoundedOutput(request.maxOutputBytes);
  const stderr = new BoundedOutput(request.maxOutputBytes);
  const started = performance.now();
  let owed = 0;
  let answered = false;
  const { live } = request;
  const giveBack = (bytes: number, whenRoom: (grant: () => void) => void): void => {
    owed += bytes;
    if (owed < WINDOW / 2) return;
    const bytesBack = owed;
    owed = 0;
    whenRoom(() => run.grant(bytesBack));
  };
  const run: CommandRun = world.exec({
    argv: request.argv,
    cwd: request.cwd,
    env: request.env,
    memoryFile: request.memoryFile,
    stateFile: request.stateFile,
    stdin: request.stdin,
    live: live?.input,
    isOneOutput: request.isOneOutput,
    umask: request.umask,
    background: request.background,
    window: WINDOW,
    onOutput: (stream, bytes) => {
      // Output of a kept process after the reply has no reader: some may arrive while `discard` is being sent.
      if (answered) return;
      (stream === "stdout" ? stdout : stderr).push(bytes);
      const { length } = bytes;
      // Until there is room, or the client has taken the bytes, the command blocks, as with a slow reader.
      if (live !== undefined) live.output(stream, bytes, () => giveBack(length, (grant) => grant()));
      else giveBack(length, (grant) => request.room.whenRoom(grant, stdout.total + stderr.total + WINDOW));
    },
    gate: request.gate,
    onViolation: request.onViolation,
    onPrograms: request.onPrograms,
    onTelemetry: request.onTelemetry,
    replacements: request.replacements,
    removals: request.removals,
    onBrought: request.onBrought,
    onSealed: request.onSealed,
  });
  request.onRun?.(run);
  live?.begin(run);
  const stop = new Stopper(world, run, request.room);
  const untimed = countDown(request, () => stop.begin("timeout"));
  const onAbort = (): void => stop.begin("cancelled");
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  const ending = await run.ending;
  untimed();
  signal.removeEventListener("abort", onAbort);
  stop.finish();
  const durationMs = performance.now() - started;
  await settle(world, run, ending, stop.cause === undefined ? request.background : "stopped");
  answered = true;
  return {
    run,
    ending,
    // What a command leaves is waited for; the limit that ends that says nothing of the command.
    timedOut: stop.cause === "timeout" && !("overBefore" in ending),
    cancelled: stop.cause === "cancelled",
    stdout,
    stderr,
    durationMs,
  };
}

/** The longest timer; Node turns a longer delay into none. */
const LONGEST_WAIT_MS = 2_147_483_647;

/** Calls `onOver` once the time and its extensions are over; returns a function that cancels the timer. */
function countDown(
  { timeoutMs, more = () => 0 }: Pick<RunRequest, "timeoutMs" | "more">,
  onOver: () => void,
): () => void {
  let left = timeoutMs;
  let timer: NodeJS.Timeout;
  const wait = (): void => {
    const step = Math.min(left, LONGEST_WAIT_MS);
    timer = setTimeout(() => {
      left -= step;
      if (left <= 0) left = more();
      if (left <= 0) onOver();
      else wait();
    }, step);
  };
  wait();
  return () => clearTimeout(timer);
}

/** Ends a command with rising severity: SIGTERM, SIGKILL for the whole tree, ending the world. */
class Stopper {
  readonly #world: World;
  readonly #run: CommandRun;
  readonly #room: OutputShare;
  #timer: NodeJS.Timeout | undefined;
  cause: "timeout" | "cancelled" | undefined;

  constructor(world: World, run: CommandRun, room: OutputShare) {
    this.#world = world;
    this.#run = run;
    this.#room = room;
  }

  begin(cause: "timeout" | "cancelled"): void {
    if (this.cause !== undefined) return;
    this.cause = cause;
    this.#room.force();
    this.#run.signal("SIGTERM");
    this.#timer = setTimeout(() => this.#end(), GRACE_MS);
  }

  finish(): void {
    clearTimeout(this.#timer);
  }

  #end(): void {
    this.#run.kill();
    this.#timer = setTimeout(() => this.#discard(), DISCARD_MS);
  }

  /** An end is told after the output, which a live command's reader may have left standing. */
  #discard(): void {
    this.#run.discard();
    this.#timer = setTimeout(
      () => void this.#world.end("a command in it could not be ended"),
      LAST_RESORT_MS,
    );
  }
}

/**
 * Handles processes that outlive the main process: unkillable ones end with the world, kept ones continue without their outputs.
 */
async function settle(
  world: World,
  run: CommandRun,
  ending: Ending,
  rest: "kill" | "keep" | "stopped",
): Promise<void> {
  if (ending.kind === "not_started" || ending.kind === "world_lost") return;
  if (ending.leftover) await world.end("a process in it could not be ended");
  if (rest === "kill") return;
  if (rest === "stopped") return run.kill();
  const late = new Promise<"late">((resolve) => setTimeout(resolve, DRAIN_MS, "late").unref());
  if ((await Promise.race([run.closed, late])) === "late") run.discard();
}
