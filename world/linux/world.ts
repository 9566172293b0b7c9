import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { FsDiff, Isolation } from "../../schemas/generated/types.ts";
import { FRAME, TAG } from "../../schemas/generated/frames.ts";
import type { Asker } from "../model/network.ts";
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
import { hitViolation } from "../seccomp/hit.ts";
import { namespaceViolation } from "../seccomp/openness.ts";
import { isWithin, isWritable } from "../plan/scopes.ts";
import { encodeExec, LinuxCommand } from "./command.ts";
import { decodeFields, decodeNumber, encodeEmpty } from "./frame-codec.ts";
import { FrameReader } from "./frame-reader.ts";
import { failureWords } from "./failure-words.ts";
import { Intruders } from "./intruders.ts";
import { DefinedGates } from "./program-gates.ts";
import type { Launched } from "./launch.ts";
import { abortError } from "../model/unavailable.ts";
import { type Owner, Owners } from "./owners.ts";
import { Pins } from "./own-homes.ts";
import { answerReplacement, Seals } from "./replacements.ts";
import { Settling } from "./settling.ts";
import { takeOut } from "./quarantine.ts";
import type { WorldFacts } from "./world-facts.ts";

/** Time limit for init's exit after its channel is closed; a few milliseconds are usual. */
const END_PATIENCE_MS = 2000;

/** Time limit for what runs in an ending world, from SIGTERM to SIGKILL: servers remove sockets and pid files. */
const ASKED_MS = 1000;

/** Time limit for reading the channel of an ended init; the kernel closes the channel at once. */
const LAST_WORDS_MS = 1000;

/** A bit of APPEARED (world/native/deny/rules.h): init has sealed the name in place. */
const DENY_JUDGED = 128;

/** A running world: the broker's end of its channel, and the commands running in the world. */
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
  readonly pins = new Pins(
    (frame) => this.#send(frame),
    () => void this.end("its init did not answer"),
  );
  readonly #strays: Strays;
  readonly #intruders: Intruders;
  readonly #launched: Launched;
  readonly #channel: Duplex;
  readonly #commands = new Map<number, LinuxCommand>();
  #listeners: ((processes: readonly WorldProcess[]) => void)[] = [];
  /** Callbacks of the newest command: BROUGHT and APPEARED do not say which command's process made the name. */
  #lastOnBrought: ExecRequest["onBrought"];
  /** Set by init's check of all scratch folders at the end of each command; while unset, the broker skips its own search. */
  #mayHaveStrays = false;
  #lastOnSealed: ExecRequest["onSealed"];
  #nextId = 1;
  /** Why the world ends; set at once, so that no command begins in an ending world. */
  #ending: string | undefined;
  /** Settles when what runs in an ending world has had time to end on SIGTERM. */
  #asked: Promise<void> | undefined;
  #loss: string | undefined;
  /** How init ended; undefined while init runs. */
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
    // A world without its network would look like a world that may reach nothing.
    void facts.network?.ended.then((cause) => (this.#loss === undefined ? this.end(cause) : undefined));
  }

  get isolation(): Isolation {
    return this.#facts.isolation();
  }

  exec(request: ExecRequest): CommandRun {
    const id = this.#takeId();
    const command = new LinuxCommand(id, (frame) => this.#send(frame), {
      ...request,
      describeHit: (hit) =>
        this.spec.seccomp === "log" ? hitViolation(hit) : namespaceViolation(hit, this.#facts.namespaces),
      record: new CommandRecord(this.spec),
      immovable: this.#facts.immovable,
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
    // Sends the GATE frame, which must precede EXEC.
    const over = this.#loss ?? this.#ending;
    const gate = gated && over === undefined ? this.#gates.numberOf(request.gate) : undefined;
    const frame = encodeExec(id, request, gate, this.#addressFor(request));
    if (over !== undefined) {
      command.takeLoss(over);
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
    return inode === 0 ? null : await this.#owner(() => this.#owners.ask(inode));
  }

  askerOf(asker: Asker): Promise<SocketOwner | null> {
    return this.#owner(() => this.#owners.askFor(asker));
  }

  async #owner(ask: () => Promise<Owner | undefined>): Promise<SocketOwner | null> {
    const owner = this.#loss === undefined ? await ask() : undefined;
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
    // An overlay's changes are not on the host: nothing to seal there.
    return isNothing || this.spec.access.kind !== "direct"
      ? Promise.resolve({ sealed: [], unsealed: [] })
      : this.#settling.ask(folders);
  }

  strays(): Promise<Strayed> {
    const isLost = this.#loss !== undefined;
    return this.#mayHaveStrays || isLost ? this.#strays.take() : Promise.resolve({ paths: [], count: 0 });
  }

  async end(cause: string): Promise<void> {
    this.#ending ??= cause;
    this.#asked ??= this.#askToEnd();
    await this.#asked;
    // Close only the broker's side: init ends every process and then still reports the remaining denied names.
    this.#channel.end();
    this.#loss ??= cause;
    await this.#gone();
    this.#settle(cause);
  }

  /** Asks what runs, and what earlier commands left. */
  async #askToEnd(): Promise<void> {
    if (this.#loss !== undefined || this.#commands.size === 0) return;
    const commands = [...this.#commands.values()];
    for (const command of commands) command.endWithWorld();
    const gone = Promise.all(commands.map(({ closed }) => closed));
    await Promise.race([gone, sleep(ASKED_MS, undefined, { ref: false })]);
  }

  /** Waits until init has ended and its last frames were read. */
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
      // Init's last frames may still be unread: the endings of commands, and the reason of a failure.
      this.#fate = cause;
      setTimeout(() => this.#lose(cause), LAST_WORDS_MS).unref();
    });
  }

  #takeFrame(type: number, id: number, payload: Buffer): void {
    if (type === FRAME.LISTED) return this.#takeList(payload);
    if (type === FRAME.OWNED) return this.#owners.take(id, payload);
    if (type === FRAME.SEALED) return this.#seals.take(id, payload);
    if (type === FRAME.PINNED) return this.pins.take(id, payload);
    if (type === FRAME.SETTLED) return this.#settling.take(id, payload);
    if (type === FRAME.BROUGHT) return this.#takeBrought(payload);
    if (type === FRAME.FAILED) return this.#lose(failureWords(payload));
    if (type === FRAME.APPEARED) return this.#takeIntruder(payload);
    if (type === FRAME.EXIT || type === FRAME.CLOSED) this.#intruders.settle();
    const isOver = this.#commands.get(id)?.takeFrame(type, payload) === true;
    // In an ending world they wait for its loss.
    if (isOver && this.#ending === undefined) this.#commands.delete(id);
  }

  #takeIntruder(payload: Buffer): void {
    const fields = new Map(decodeFields(payload));
    const path = fields.get(TAG.PATH);
    const denies = fields.get(TAG.DENIES);
    if (path === undefined || denies === undefined)
      return this.#lose("its channel broke: APPEARED is incomplete");
    const bits = decodeNumber(denies);
    if ((bits & DENY_JUDGED) !== 0 && this.#lastOnSealed !== undefined)
      return this.#lastOnSealed(path.toString("utf8"));
    const newest = [...this.#commands.values()].at(-1);
    this.#intruders.take(path, bits, newest?.onViolation);
  }

  #takeBrought(payload: Buffer): void {
    const path = new Map(decodeFields(payload)).get(TAG.PATH);
    if (path === undefined) return this.#lose("its channel broke: BROUGHT is incomplete");
    this.#lastOnBrought?.(path.toString("utf8"));
  }

  #takeList(payload: Buffer): void {
    const processes = decodeFields(payload).map(([, bytes]) => parseProcess(bytes.toString("utf8")));
    const waiting = this.#listeners;
    this.#listeners = [];
    for (const tell of waiting) tell(processes);
  }

  /** Returns a new address for reports of one command's programs; random, so that nobody can bind the address first. */
  #addressFor({ onTelemetry }: ExecRequest): string | undefined {
    if (onTelemetry === undefined || this.telemetry?.on !== true) return undefined;
    return `substrate-${randomBytes(16).toString("hex")}`;
  }

  /** Returns an unused command id: the counter wraps after four billion commands, and skips ids still in use. */
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

  /** Closes the channel and passes the cause to everybody still waiting. */
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
    this.pins.close();
    this.#ended(cause);
  }
}

/** Whether commands of a world may write to the host's file at a path. */
function writesOnHost(path: string, spec: WorldSpec): boolean {
  if (spec.access.kind !== "direct") return false;
  return isWritable(path, spec) || (spec.gitFolder !== undefined && isWithin(path, spec.gitFolder));
}

function parseProcess(text: string): WorldProcess {
  const [, pid, parent, ...argv] = text.split("\0");
  return { pid: Number(pid), parent: Number(parent), argv: argv.join(" ") };
}
