/** One command in a world, from its start to the first ending that wins. */
import type {
  CommandRun,
  Ending,
  ExecRequest,
  MemoryFile,
  ProgramGate,
  World,
  WorldViolation,
} from "../../world/backend.ts";
import type { OutputShare } from "./output-room.ts";
import { BoundedOutput } from "./output.ts";

/** Output bytes in flight; half of it used up is granted again in one frame. */
const WINDOW = 512 * 1024;

/** After a polite SIGTERM, how long before the whole tree is ended for certain. */
const GRACE_MS = 250;

/** After that, how long before the world itself is given up. */
const LAST_RESORT_MS = 5000;

/** How long a reply may wait for outputs that something in the background holds open (CONTRACT §3). */
const DRAIN_MS = 100;

export type RunRequest = {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly memoryFile?: MemoryFile | undefined;
  readonly stdin: Uint8Array | undefined;
  readonly background: "kill" | "keep";
  readonly timeoutMs: number;
  /** Asked when that is over: how many milliseconds more; 0 ends the command. Absent: none. */
  readonly more?: () => number;
  readonly maxOutputBytes: number;
  /** Where the room for its outputs comes from, beyond a window of them. */
  readonly room: OutputShare;
  /** Decides about each program that it starts. */
  readonly gate: ProgramGate;
  readonly onViolation: (violation: WorldViolation) => void;
  /** Called at once, before the command can have done anything. */
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

/** Runs a command and settles when it has ended, its time is over, or `signal` says that nobody waits any more. */
export async function runInWorld(world: World, request: RunRequest, signal: AbortSignal): Promise<Ran> {
  const stdout = new BoundedOutput(request.maxOutputBytes);
  const stderr = new BoundedOutput(request.maxOutputBytes);
  const started = performance.now();
  let owed = 0;
  let answered = false;
  const run: CommandRun = world.exec({
    argv: request.argv,
    cwd: request.cwd,
    env: request.env,
    memoryFile: request.memoryFile,
    stdin: request.stdin,
    background: request.background,
    window: WINDOW,
    onOutput: (stream, bytes) => {
      // What a kept process writes after the reply is nobody's: it may be on its way when `discard` is sent.
      if (answered) return;
      (stream === "stdout" ? stdout : stderr).push(bytes);
      owed += bytes.length;
      if (owed < WINDOW / 2) return;
      const bytesBack = owed;
      owed = 0;
      // Until then the command waits as it does for a slow reader.
      request.room.whenRoom(() => run.grant(bytesBack), stdout.total + stderr.total + WINDOW);
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
    timedOut: stop.cause === "timeout",
    cancelled: stop.cause === "cancelled",
    stdout,
    stderr,
    durationMs,
  };
}

/** Node takes a longer wait for none at all. */
const LONGEST_WAIT_MS = 2_147_483_647;

/** Calls `onOver` once the time is over and there is no more; returns what takes that back. */
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

/** Ends a command in rising severity: SIGTERM, SIGKILL for the whole tree, the world. */
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
    this.#timer = setTimeout(
      () => void this.#world.end("a command in it could not be ended"),
      LAST_RESORT_MS,
    );
  }
}

/** What outlived the main process: ended with the world if nothing else helps, or kept with its outputs let go. */
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
