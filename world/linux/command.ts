import { isIPv6 } from "node:net";
import { constants } from "node:os";
import { FRAME, FRAME_MAX_MEMORY_FILE, FRAME_MEMORY_FILE_FD, TAG } from "../../schemas/generated/frames.ts";
import type { FsDiff } from "../../schemas/generated/types.ts";
import type {
  CommandRun,
  ExecRequest,
  ReplacementJudge,
  TerminalSize,
  WorldViolation,
} from "../model/world.ts";
import type { Ending } from "../model/endings.ts";
import type { Counted } from "../cgroup/words.ts";
import type { Hit } from "../seccomp/hit.ts";
import type { CommandRecord } from "../changes/command-record.ts";
import { errnoName } from "../model/errno.ts";
import { decodePrograms } from "./program-events.ts";
import { answerStart } from "./program-gates.ts";
import { answerRemoval } from "./removals.ts";
import { decodeHeard, decodeTelemetry } from "./telemetry-events.ts";
import { withPreload } from "../model/telemetry.ts";
import {
  decodeFields,
  decodeNumber,
  encodeBytes,
  encodeEmpty,
  encodeFields,
  encodeNumber,
  type Field,
  FrameTooLarge,
} from "./frame-codec.ts";

const MEMORY_FILE = String(FRAME_MEMORY_FILE_FD);

/** Sends one frame; the channel handles the case that it is closed. */
export type SendFrame = (frame: Buffer) => void;

/** Receivers of the command's frames. */
export type CommandSide = {
  readonly onOutput: ExecRequest["onOutput"];
  readonly live?: ExecRequest["live"];
  readonly stateFile?: ExecRequest["stateFile"];
  readonly onViolation: ExecRequest["onViolation"];
  /** Words a VIOLATION frame. */
  readonly describeHit: (hit: Hit) => WorldViolation;
  readonly record: CommandRecord;
  readonly gate?: ExecRequest["gate"];
  readonly onPrograms?: ExecRequest["onPrograms"];
  readonly onTelemetry?: ExecRequest["onTelemetry"];
  readonly replacements?: ExecRequest["replacements"];
  readonly removals?: ExecRequest["removals"];
  /** Paths that hold their folders in place on the host. */
  readonly immovable: readonly string[];
  /** Answers a REPLACING frame. */
  readonly replace?: (payload: Buffer, judge: ReplacementJudge | undefined) => Promise<Field[]>;
  /** Called before `ending` settles if any scratch folder was written since the world was made. */
  readonly onStrayed: () => void;
  /** Called once, before `ending` settles. */
  readonly onCounted: (counted: Counted) => void;
};

/** One command on a world's channel: methods send frames, `take…` methods receive frames. */
export class LinuxCommand implements CommandRun {
  readonly ending: Promise<Ending>;
  readonly closed: Promise<void>;
  readonly #id: number;
  readonly #send: SendFrame;
  readonly onViolation: ExecRequest["onViolation"];
  readonly #request: CommandSide;
  #isOver = false;
  #endsWithWorld = false;
  #end: (ending: Ending) => void = () => {};
  #close: () => void = () => {};

  constructor(id: number, send: SendFrame, request: CommandSide) {
    this.#id = id;
    this.#send = send;
    this.#request = request;
    this.onViolation = request.onViolation;
    this.ending = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.closed = new Promise((resolve) => {
      this.#close = resolve;
    });
  }

  changes(signal: AbortSignal): Promise<FsDiff> {
    return this.#request.record.diff(signal);
  }

  grant(bytes: number): void {
    this.#send(encodeNumber(FRAME.WINDOW, this.#id, bytes));
  }

  input(bytes: Uint8Array): void {
    this.#send(encodeBytes(FRAME.INPUT, this.#id, bytes));
  }

  endInput(): void {
    this.#send(encodeEmpty(FRAME.INPUT_END, this.#id));
  }

  resize({ columns, rows }: TerminalSize): void {
    this.#send(
      encodeFields(FRAME.RESIZE, this.#id, [
        [TAG.COLUMNS, columns],
        [TAG.ROWS, rows],
      ]),
    );
  }

  interrupt(name: NodeJS.Signals): void {
    this.#send(encodeNumber(FRAME.INTERRUPT, this.#id, constants.signals[name]));
  }

  signal(name: NodeJS.Signals): void {
    this.#send(encodeNumber(FRAME.SIGNAL, this.#id, constants.signals[name]));
  }

  kill(): void {
    this.signal("SIGKILL");
  }

  discard(): void {
    this.#send(encodeEmpty(FRAME.DISCARD, this.#id));
  }

  takeOutput(type: number, bytes: Buffer): void {
    this.#request.onOutput(type === FRAME.STDOUT ? "stdout" : "stderr", bytes);
  }

  /** Takes a frame of this command; returns true for the last frame. */
  takeFrame(type: number, payload: Buffer): boolean {
    if (type === FRAME.CLOSED) return this.#finish();
    if (type === FRAME.TOUCHED) {
      this.#request.record.take(payload);
      return false;
    }
    if (type === FRAME.INPUT_TAKEN) {
      this.#request.live?.onTaken(decodeNumber(payload));
      return false;
    }
    if (type === FRAME.STOPPED) {
      this.#request.live?.onStopped?.(signalName(decodeNumber(payload)));
      return false;
    }
    if (type === FRAME.STATE) {
      this.#request.stateFile?.onState(Buffer.from(payload));
      return false;
    }
    if (type === FRAME.STARTING) return this.#ask(payload);
    if (type === FRAME.REPLACING) return this.#replace(payload);
    if (type === FRAME.REMOVING) return this.#remove(payload);
    if (type === FRAME.PROGRAMS) {
      this.#request.onPrograms?.(decodePrograms(payload), 0);
      return false;
    }
    if (type === FRAME.TELEMETRY) {
      this.#request.onTelemetry?.({ kind: "events", events: decodeTelemetry(payload) });
      return false;
    }
    const list = decodeFields(payload);
    const fields = new Map(list);
    if (type === FRAME.REFUSED_SOCKET) {
      this.onViolation(refusedSocket(fields));
      return false;
    }
    if (type === FRAME.REFUSED_ADDRESS) {
      this.onViolation(refusedAddress(fields));
      return false;
    }
    if (type === FRAME.REFUSED_WRITE) {
      this.onViolation(refusedWrite(fields));
      return false;
    }
    if (type === FRAME.VIOLATION) {
      this.onViolation(this.#request.describeHit(hit(fields)));
      return false;
    }
    if (type === FRAME.EXEC_FAILED) {
      this.#end(notStarted(fields));
      return this.#finish();
    }
    const untold = numberOf(fields, TAG.UNTOLD_PROGRAMS) ?? 0;
    if (untold > 0) this.#request.onPrograms?.([], untold);
    const heard = list.filter(([tag]) => tag === TAG.HEARD).map(([, text]) => text.toString("utf8"));
    this.#request.onTelemetry?.({ kind: "counts", counts: decodeHeard(heard) });
    const measured = measuredOf(list);
    this.#request.onCounted({
      oomKill: measured.get("oom_kill"),
      pidsMax: measured.get("pids_max"),
      seen: numberOf(fields, TAG.SEEN),
    });
    if (numberOf(fields, TAG.STRAYED) === 1) this.#request.onStrayed();
    this.#request.record.end({
      recorded: numberOf(fields, TAG.RECORDED) === 1,
      unread: numberOf(fields, TAG.UNREAD) ?? 0,
      untold: numberOf(fields, TAG.UNTOLD) ?? 0,
    });
    if (!this.#endsWithWorld) this.#end(ended(list, measured));
    // Processes that it left may go on.
    return numberOf(fields, TAG.CLOSED) === 1 ? this.#finish() : false;
  }

  /** Asks for the end of what runs. Its caller is told of the loss of its world, and not before that: a next command gets another one. */
  endWithWorld(): void {
    this.#endsWithWorld = true;
    this.signal("SIGTERM");
  }

  takeLoss(cause: string): void {
    this.#isOver = true;
    this.#end({ kind: "world_lost", cause });
    this.#close();
  }

  /** Throws without a gate: init asks only for gated commands. */
  #ask(payload: Buffer): false {
    const { gate } = this.#request;
    if (gate === undefined) throw new RangeError("STARTING about a command that has no gate");
    void answerStart(gate, this.#id, payload, this.#send);
    return false;
  }

  #replace(payload: Buffer): false {
    const { replace, replacements } = this.#request;
    if (replace === undefined) throw new RangeError("REPLACING of a world that replaces nothing");
    this.#answer(replace(payload, replacements));
    return false;
  }

  /** Without an answer init refuses the call when its patience ends (FRAME_REPLACE_PATIENCE_MS). */
  #answer(fields: Promise<readonly Field[]>): void {
    fields
      .then((known) => this.#send(encodeFields(FRAME.REPLACED, this.#id, known)))
      .catch((error: unknown) => {
        const why = error instanceof Error ? error.message : String(error);
        const message = `A change of git's files was refused: ${why}`;
        this.#request.onViolation({ kind: "write", subject: "git", message });
      });
  }

  #remove(payload: Buffer): false {
    const { removals, immovable, onViolation } = this.#request;
    const side = { onViolation, immovable, isOver: () => this.#isOver };
    this.#answer(answerRemoval(payload, removals, side));
    return false;
  }

  #finish(): true {
    this.#isOver = true;
    this.#close();
    return true;
  }
}

/** Encodes a request as an EXEC frame. Throws `FrameTooLarge`. */
export function encodeExec(
  id: number,
  request: ExecRequest,
  gate: number | undefined,
  telemetry: string | undefined,
): Buffer {
  const fields: Field[] = request.argv.map((word) => [TAG.ARG, word] as const);
  const { memoryFile } = request;
  const own = memoryFile === undefined ? request.env : { ...request.env, [memoryFile.variable]: MEMORY_FILE };
  const env = telemetry === undefined ? own : withPreload(own, telemetry);
  for (const name in env) fields.push([TAG.ENV, `${name}=${env[name]}`]);
  fields.push([TAG.CWD, request.cwd], [TAG.WINDOW, request.window]);
  const { live } = request;
  if (live === undefined && request.stdin !== undefined) fields.push([TAG.STDIN, request.stdin]);
  if (live !== undefined) fields.push([TAG.OPEN, 1]);
  if (live?.terminal !== undefined) {
    fields.push([TAG.COLUMNS, live.terminal.columns], [TAG.ROWS, live.terminal.rows]);
    if (live.onStopped !== undefined) fields.push([TAG.JOB_CONTROL, 1]);
  }
  if (request.isOneOutput === true) fields.push([TAG.ONE_OUTPUT, 1]);
  if (request.umask !== undefined) fields.push([TAG.UMASK, request.umask + 0o1000]);
  if (gate !== undefined) fields.push([TAG.GATE, gate]);
  if (request.onPrograms !== undefined) fields.push([TAG.LINEAGE, 1]);
  if (telemetry !== undefined) fields.push([TAG.TELEMETRY, telemetry]);
  if (request.background === "keep") fields.push([TAG.KEEP, 1]);
  if (memoryFile !== undefined) fields.push([TAG.MEMORY_FILE, fitting(memoryFile.bytes)]);
  const { stateFile } = request;
  if (stateFile !== undefined)
    fields.push([TAG.STATE_PATH, stateFile.path], [TAG.STATE_SCRIPT, stateFile.script]);
  return encodeFields(FRAME.EXEC, id, fields);
}

/** Checks the size here: init ends a world that receives a longer memory file. */
function fitting(bytes: Uint8Array): Uint8Array {
  if (bytes.length <= FRAME_MAX_MEMORY_FILE) return bytes;
  throw new FrameTooLarge(`A memory file of ${bytes.length} bytes is longer than ${FRAME_MAX_MEMORY_FILE}`);
}

/** Returns the counters of the command's cgroup by name; empty without a cgroup. */
function measuredOf(fields: ReturnType<typeof decodeFields>): ReadonlyMap<string, number> {
  const texts = fields.filter(([tag]) => tag === TAG.MEASURED).map(([, bytes]) => bytes.toString("utf8"));
  return new Map(
    texts.map((text) => [text.slice(0, text.indexOf("=")), Number(text.slice(text.indexOf("=") + 1))]),
  );
}

function ended(list: ReturnType<typeof decodeFields>, measured: ReadonlyMap<string, number>): Ending {
  const fields = new Map(list);
  const closedPorts = list.filter(([tag]) => tag === TAG.CLOSED_PORT).map(([, bytes]) => decodeNumber(bytes));
  const cpu = numberOf(fields, TAG.CPU_US);
  const killedAfter = numberOf(fields, TAG.KILLED_AFTER);
  const usage = {
    cpuMs: cpu === undefined ? null : cpu / 1000,
    memoryPeakBytes: measured.get("memory_peak") ?? numberOf(fields, TAG.MAXRSS) ?? null,
    processes: measured.get("pids_peak") ?? null,
  };
  const rest = {
    usage,
    kept: numberOf(fields, TAG.KEPT) ?? 0,
    leftover: numberOf(fields, TAG.LEFTOVER) === 1,
    ...(killedAfter === undefined ? {} : { killedAfter }),
    ...(numberOf(fields, TAG.OVER_BEFORE) === 1 ? { overBefore: true as const } : {}),
    ...(closedPorts.length === 0 ? {} : { closedPorts }),
  };
  const signo = numberOf(fields, TAG.SIGNO);
  if (signo !== undefined) return { kind: "signalled", signal: signalName(signo), ...rest };
  return { kind: "exited", code: numberOf(fields, TAG.CODE) ?? 255, ...rest };
}

function hit(fields: ReadonlyMap<number, Buffer>): Hit {
  const words = fields.get(TAG.ARGUMENTS) ?? Buffer.alloc(0);
  return {
    number: numberOf(fields, TAG.CALL) ?? 0,
    audit: numberOf(fields, TAG.AUDIT) ?? 0,
    arguments: Array.from({ length: words.length / 8 }, (_each, at) => words.readBigUInt64LE(8 * at)),
    count: numberOf(fields, TAG.HITS) ?? 1,
    refused: numberOf(fields, TAG.REFUSED) ?? 0,
  };
}

/** From inside, the socket file of a dead server looks the same as a socket bound by a program of the host. */
function refusedSocket(fields: ReadonlyMap<number, Buffer>): WorldViolation {
  const path = fields.get(TAG.PATH)?.toString("utf8") ?? "";
  const why = path.startsWith("@")
    ? "in the host's network (world.isolate_network: false) abstract sockets belong to the host's programs. Use a socket with a path"
    : 'no program of this world has bound it, and world.sockets of the policy does not name it. A server that an earlier command left in the background ended with that command unless it was kept ("background": "keep", --keep)';
  const message = `The Unix socket '${path}' was refused: ${why}`;
  return { kind: "connection", subject: path, message };
}

function refusedAddress(fields: ReadonlyMap<number, Buffer>): WorldViolation {
  const dialled = {
    address: fields.get(TAG.ADDRESS)?.toString("utf8") ?? "",
    port: numberOf(fields, TAG.PORT) ?? 0,
  };
  const subject = isIPv6(dialled.address)
    ? `[${dialled.address}]:${dialled.port}`
    : `${dialled.address}:${dialled.port}`;
  const message = `A connection to ${subject} was refused by the world's network`;
  return { kind: "connection", subject, message, dialled };
}

/** The broker, which knows the policy, replaces the message with the rule behind the refusal. */
function refusedWrite(fields: ReadonlyMap<number, Buffer>): WorldViolation {
  const path = fields.get(TAG.PATH)?.toString("utf8") ?? "";
  const errno = errnoName(numberOf(fields, TAG.ERRNO) ?? 0);
  return { kind: "write", subject: path, message: `'${path}' cannot be written in this world (${errno})` };
}

function notStarted(fields: ReadonlyMap<number, Buffer>): Ending {
  return {
    kind: "not_started",
    step: fields.get(TAG.STEP)?.toString("utf8") ?? "unknown",
    path: fields.get(TAG.PATH)?.toString("utf8") ?? "",
    errno: errnoName(numberOf(fields, TAG.ERRNO) ?? 0),
  };
}

function numberOf(fields: ReadonlyMap<number, Buffer>, tag: number): number | undefined {
  const bytes = fields.get(tag);
  return bytes === undefined ? undefined : decodeNumber(bytes);
}

function signalName(signo: number): string {
  const found = Object.entries(constants.signals).find(([, number]) => number === signo);
  return found === undefined ? `SIG${signo}` : found[0];
}
