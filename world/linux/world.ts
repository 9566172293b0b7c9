import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { FsDiff, Isolation } from "../../schemas/generated/types.ts";
import { FRAME, TAG } from "../../schemas/generated/frames.ts";
import type {
  CommandRun,
  ExecRequest,
  Settled,
  SocketOwner,
  Strayed,
  World,
  WorldProcess,
  WorldSpec,
} from "../model/world.ts";
import { heldLimits, limitViolations } from "../cgroup/words.ts";
import { CommandRecord } from "../changes/command-record.ts";
import type { NetworkHelper } from "../network/helper.ts";
import { overlayDiff } from "../overlay/diff.ts";
import { Strays } from "../overlay/strays.ts";
import { isWithin, isWritable } from "../plan/scopes.ts";
import { encodeExec, LinuxCommand } from "./command.ts";
import { decodeFields, decodeNumber, encodeEmpty } from "./frame-codec.ts";
import { FrameReader } from "./frame-reader.ts";
import { failureWords } from "./failure-words.ts";
import { Intruders } from "./intruders.ts";
import { DefinedGates } from "./program-gates.ts";
import type { Launched } from "./launch.ts";
import { abortError } from "../model/unavailable.ts";
import { Owners } from "./owners.ts";
import { answerReplacement, Seals } from "./replacements.ts";
import { Settling } from "./settling.ts";
import { takeOut } from "./quarantine.ts";
import type { WorldFacts } from "./world-facts.ts";

/** How long init may take to go once its channel is closed; it needs a few milliseconds. */
const END_PATIENCE_MS = 2000;

/** How long the channel of an init that has ended may stay open; the kernel closes it at once. */
const LAST_WORDS_MS = 1000;

/** A bit of APPEARED, as init sends it (world/native/deny/rules.h): the name is sealed where it stands. */
const DENY_JUDGED = 128;

/** A running world: the broker's end of its channel and the commands that run on it. */
export class LinuxWorld implements World {
  readonly id: string;
  readonly spec: WorldSpec;
  readonly mounts: readonly string[];
  readonly limits: World["limits"];
  readonly pid: number;
  readonly ended: Promise<string>;
  readonly network: NetworkHelper | null;
  readonly mountedAt: bigint | null;
  readonly telemetry: World["telemetry"];
  readonly #facts: WorldFacts;
  readonly #owners = new Owners((frame) => this.#send(frame));
  readonly #gates = new DefinedGates((frame) => this.#send(frame));
  readonly #seals = new Seals((frame) => this.#send(frame));
  readonly #settling = new Settling(
    (frame) => this.#send(frame),
    () => void this.end("its init did not answer"),
  );
  readonly #strays: Strays;
  readonly #intruders: Intruders;
  readonly #launched: Launched;
  readonly #channel: Duplex;
  readonly #commands = new Map<number, LinuxCommand>();
  #listeners: ((processes: readonly WorldProcess[]) => void)[] = [];
  /** Of the command that began last: which one's process made a git folder, nobody can say. */
  #lastOnBrought: ExecRequest["onBrought"];
  /** Init looked at the end of each command, in one go: as long as it found nothing, nothing is looked for here. */
  #mayHaveStrays = false;
  #lastOnSealed: ExecRequest["onSealed"];
  #nextId = 1;
  #loss: string | undefined;
  /** How init ended, once it has. */
  #fate: string | undefined;
  #ended: (cause: string) => void = () => {};

  constructor(facts: WorldFacts, launched: Launched) {
    this.id = facts.id;
    this.spec = facts.spec;
    this.mounts = facts.mounts;
    this.limits = heldLimits(facts.spec.limits, facts.holding);
    this.#facts = facts;
    this.network = facts.network ?? null;
    this.mountedAt = facts.mountedAt;
    this.telemetry = facts.telemetry;
    this.#strays = new Strays(facts.strays);
    this.#intruders = new Intruders(facts.quarantine);
    this.pid = launched.holder.pid;
    this.#launched = launched;
    this.#channel = launched.channel;
    this.ended = new Promise((resolve) => {
      this.#ended = resolve;
    });
    this.#listen();
    const follower = {
      project: facts.spec.project,
      writes: (path: string): boolean => writesOnHost(path, facts.spec),
    };
    facts.replacements.follow(this.#seals, follower, launched.holder.ended);
    // A world without its network looks like one that may reach nothing, which is not what was asked for.
    void facts.network?.ended.then((cause) => (this.#loss === undefined ? this.end(cause) : undefined));
  }

  get isolation(): Isolation {
    return this.#facts.isolation();
  }

  exec(request: ExecRequest): CommandRun {
    const id = this.#takeId();
    const command = new LinuxCommand(id, (frame) => this.#send(frame), {
      ...request,
      record: new CommandRecord(this.spec),
      replace: (payload, judge) => answerReplacement(this.#facts.replacements, payload, judge, request),
      onStrayed: () => {
        this.#mayHaveStrays = true;
      },
      onCounted: (counted) => {
        for (const violation of limitViolations(this.spec.limits, this.#facts.holding, counted))
          request.onViolation(violation);
      },
    });
    this.#intruders.claim(request.onViolation);
    this.#lastOnBrought = request.onBrought ?? this.#lastOnBrought;
    this.#lastOnSealed = request.onSealed ?? this.#lastOnSealed;
    const gated = request.gate !== undefined && this.#facts.gated;
    // Its GATE goes before it.
    const gate = gated && this.#loss === undefined ? this.#gates.numberOf(request.gate) : undefined;
    const frame = encodeExec(id, request, gate, this.#addressFor(request));
    if (this.#loss !== undefined) {
      command.takeLoss(this.#loss);
      return command;
    }
    this.#commands.set(id, command);
    this.#send(frame);
    return command;
  }

  processes(signal: AbortSignal): Promise<readonly WorldProcess[]> {
    if (this.#loss !== undefined) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(abortError(signal)), { once: true });
      this.#listeners.push(resolve);
      this.#send(encodeEmpty(FRAME.LIST, 0));
    });
  }

  async ownerOf(inode: number): Promise<SocketOwner | null> {
    const owner = inode === 0 || this.#loss !== undefined ? undefined : await this.#owners.ask(inode);
    const run = owner === undefined ? undefined : this.#commands.get(owner.command);
    return owner === undefined || run === undefined ? null : { run, pid: owner.pid, program: owner.program };
  }

  async fsDiff(signal: AbortSignal): Promise<FsDiff> {
    if (this.spec.access.kind !== "overlay")
      throw new Error(`World ${this.id} writes directly: it has no upper layer`);
    const upper = join(this.spec.access.layers, "upper");
    const { changes, userxattr } = this.#facts;
    return await overlayDiff(changes, { upper, lower: this.spec.project, userxattr }, signal);
  }

  takeOut(path: string): string {
    return takeOut(Buffer.from(path), this.#facts.quarantine).toString("utf8");
  }

  isSealed(path: string): Promise<boolean> {
    return this.#seals.isSealed(path);
  }

  settle(folders: readonly string[], mayBeMore: boolean): Promise<Settled> {
    const isNothing = folders.length === 0 && !mayBeMore && this.#commands.size === 0;
    // Over an overlay nothing of it stands on the host.
    return isNothing || this.spec.access.kind !== "direct"
      ? Promise.resolve({ sealed: [], unsealed: [] })
      : this.#settling.ask(folders);
  }

  strays(): Promise<Strayed> {
    const isLost = this.#loss !== undefined;
    return this.#mayHaveStrays || isLost ? this.#strays.take() : Promise.resolve({ paths: [], count: 0 });
  }

  async end(cause: string): Promise<void> {
    // Only our side is closed: init ends everything, and still tells which denied names that left.
    this.#channel.end();
    this.#loss ??= cause;
    await this.#gone();
    this.#settle(cause);
  }

  /** Init has ended, and what it said last was read. */
  async #gone(): Promise<void> {
    const heard = new Promise<void>((resolve) => {
      if (this.#channel.closed) resolve();
      else this.#channel.once("close", () => resolve());
    });
    const stubborn = setTimeout(() => this.#launched.holder.kill(), END_PATIENCE_MS);
    await this.#launched.holder.ended;
    clearTimeout(stubborn);
    await Promise.race([heard, sleep(LAST_WORDS_MS, undefined, { ref: false })]);
  }

  #listen(): void {
    const reader = new FrameReader({
      onBytes: (type, id, bytes) => this.#commands.get(id)?.takeOutput(type, bytes),
      onFrame: (type, id, payload) => this.#takeFrame(type, id, payload),
    });
    this.#channel.on("data", (chunk: Buffer) => {
      try {
        reader.push(chunk);
      } catch (error) {
        this.#lose(`its channel broke: ${error instanceof Error ? error.message : String(error)}`);
      }
    });
    this.#channel.on("error", (error) => this.#lose(`its channel broke: ${error.message}`));
    this.#channel.on("close", () => this.#lose(this.#fate ?? "its init closed the channel"));
    void this.#launched.holder.ended.then((cause) => {
      this.#facts.cleanUp();
      this.#facts.network?.end();
      // What it said last may not be read yet: the endings of commands, and why it gave up.
      this.#fate = cause;
      setTimeout(() => this.#lose(cause), LAST_WORDS_MS).unref();
    });
  }

  #takeFrame(type: number, id: number, payload: Buffer): void {
    if (type === FRAME.LISTED) return this.#takeList(payload);
    if (type === FRAME.OWNED) return this.#owners.take(id, payload);
    if (type === FRAME.SEALED) return this.#seals.take(id, payload);
    if (type === FRAME.SETTLED) return this.#settling.take(id, payload);
    if (type === FRAME.BROUGHT) return this.#takeBrought(payload);
    if (type === FRAME.FAILED) return this.#lose(failureWords(payload));
    if (type === FRAME.APPEARED) return this.#takeIntruder(payload);
    if (type === FRAME.EXIT || type === FRAME.CLOSED) this.#intruders.settle();
    if (this.#commands.get(id)?.takeFrame(type, payload) === true) this.#commands.delete(id);
  }

  #takeIntruder(payload: Buffer): void {
    const fields = new Map(decodeFields(payload));
    const path = fields.get(TAG.PATH);
    const denies = fields.get(TAG.DENIES);
    if (path === undefined || denies === undefined)
      return this.#lose("its channel broke: APPEARED is not whole");
    const bits = decodeNumber(denies);
    if ((bits & DENY_JUDGED) !== 0 && this.#lastOnSealed !== undefined)
      return this.#lastOnSealed(path.toString("utf8"));
    const newest = [...this.#commands.values()].at(-1);
    this.#intruders.take(path, bits, newest?.onViolation);
  }

  #takeBrought(payload: Buffer): void {
    const path = new Map(decodeFields(payload)).get(TAG.PATH);
    if (path === undefined) return this.#lose("its channel broke: BROUGHT is not whole");
    this.#lastOnBrought?.(path.toString("utf8"));
  }

  #takeList(payload: Buffer): void {
    const processes = decodeFields(payload).map(([, bytes]) => parseProcess(bytes.toString("utf8")));
    const waiting = this.#listeners;
    this.#listeners = [];
    for (const tell of waiting) tell(processes);
  }

  /** Where one command's programs report: a name of its own, which nobody has before it. */
  #addressFor({ onTelemetry }: ExecRequest): string | undefined {
    if (onTelemetry === undefined || this.telemetry?.on !== true) return undefined;
    return `substrate-${randomBytes(16).toString("hex")}`;
  }

  /** Ids are used again only after four billion commands; one that is still running is stepped over. */
  #takeId(): number {
    do this.#nextId = (this.#nextId % 0xffff_ffff) + 1;
    while (this.#commands.has(this.#nextId));
    return this.#nextId;
  }

  #send(frame: Buffer): void {
    if (this.#loss === undefined) this.#channel.write(frame);
  }

  #lose(cause: string): void {
    if (this.#loss !== undefined) return;
    this.#loss = cause;
    this.#settle(cause);
  }

  /** Nothing more is heard: whoever still waits is told why. */
  #settle(cause: string): void {
    this.#channel.destroy();
    this.#intruders.settle();
    for (const command of this.#commands.values()) command.takeLoss(cause);
    this.#commands.clear();
    for (const tell of this.#listeners) tell([]);
    this.#listeners = [];
    this.#owners.close();
    this.#seals.close();
    this.#settling.close();
    this.#ended(cause);
  }
}

/** Whether commands of a world may write what stands at a path on the host. */
function writesOnHost(path: string, spec: WorldSpec): boolean {
  if (spec.access.kind !== "direct") return false;
  return isWritable(path, spec) || (spec.gitFolder !== undefined && isWithin(path, spec.gitFolder));
}

function parseProcess(text: string): WorldProcess {
  const [, pid, parent, ...argv] = text.split("\0");
  return { pid: Number(pid), parent: Number(parent), argv: argv.join(" ") };
}
