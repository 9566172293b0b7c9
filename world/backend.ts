/**
 * The one interface between what decides (broker) and what isolates (a backend).
 *
 * Nobody above this line knows a mount; nobody below it knows a policy, an agent or HTTP.
 * A backend is chosen by what it can do, and what it could not do stands in `Isolation`.
 */
import type { FsDiff, Isolation } from "../schemas/generated/types.ts";

/** How the project appears inside: the host's own files, or an overlay whose upper layer holds every change. */
export type ProjectAccess =
  | { readonly kind: "direct" }
  | { readonly kind: "overlay"; readonly layers: string };

/** Paths are absolute host paths with variables replaced; `/**` at the end means everything below. */
export type FileScope = {
  readonly read: readonly string[];
  readonly denyRead: readonly string[];
  readonly write: readonly string[];
  readonly denyWrite: readonly string[];
};

/** Upper bounds of one world and everything in it; an absent one is not set. */
export type WorldLimits = {
  /** CPUs: 0.5 is half of one. */
  readonly cpu?: number;
  /** Bytes. */
  readonly memory?: number;
  /** Processes and threads at once. */
  readonly pids?: number;
  /** Bytes of what the world keeps of its own: `/tmp` and the like, and stray writes. */
  readonly disk?: number;
};

/** All that makes one world differ from another. Two equal specs may share a world. */
export type WorldSpec = {
  readonly project: string;
  /** Which folder that is: another one under the same name is another world. */
  readonly identity: string;
  readonly access: ProjectAccess;
  readonly files: FileScope;
  /** Never visible inside: the broker's own folder. */
  readonly hidden: readonly string[];
  /** Visible and never writable, whatever `files.write` says: the running installation. */
  readonly sealed: readonly string[];
  readonly limits: WorldLimits;
  /** `log`: nothing is refused, and what would have been is told to `onViolation`. */
  readonly seccomp: "enforce" | "log";
};

/** Something that a command did against the rules of its world: refused, undone, ended or (by policy) only noted. */
export type WorldViolation = {
  readonly kind: "system_call" | "denied_name" | "limit";
  /** The system call's name, the path, or the limit's name. */
  readonly subject: string;
  /** A sentence for people: what happened, and what was done about it. */
  readonly message: string;
};

export type ExecRequest = {
  /** The program and its words; a program without a slash is looked up in `env.PATH`. */
  readonly argv: readonly string[];
  /** Absolute, as seen inside (paths inside equal paths outside). */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** All of standard input; absent means `/dev/null`. */
  readonly stdin: Uint8Array | undefined;
  /** What happens to processes that outlive the main one. */
  readonly background: "kill" | "keep";
  /** Output bytes the caller accepts before it calls `grant`; stdout and stderr share them. */
  readonly window: number;
  /** The buffer is the caller's to keep only during the call. */
  readonly onOutput: (stream: "stdout" | "stderr", bytes: Uint8Array) => void;
  /** Called before `ending` settles for all that is known by then. */
  readonly onViolation: (violation: WorldViolation) => void;
};

/** What was measured of a command's whole tree of processes; null where this host cannot measure it. */
export type RunUsage = {
  readonly cpuMs: number | null;
  readonly memoryPeakBytes: number | null;
  readonly processes: number | null;
};

/** The ways a command ends, one of them for every command. */
export type Ending =
  | {
      readonly kind: "exited";
      readonly code: number;
      readonly usage: RunUsage;
      readonly kept: number;
      readonly leftover: boolean;
    }
  | {
      readonly kind: "signalled";
      readonly signal: string;
      readonly usage: RunUsage;
      readonly kept: number;
      readonly leftover: boolean;
    }
  | { readonly kind: "not_started"; readonly step: string; readonly path: string; readonly errno: string }
  | { readonly kind: "world_lost"; readonly cause: string };

/** One running command. */
export interface CommandRun {
  /** Settles when the main process has ended and all it wrote was handed to `onOutput`; never rejects. */
  readonly ending: Promise<Ending>;
  /** Settles when both outputs are closed as well and nothing of the command is left. Never rejects. */
  readonly closed: Promise<void>;
  /** Allows that many more output bytes. */
  grant(bytes: number): void;
  /** Sends a signal to every process of the command. */
  signal(name: NodeJS.Signals): void;
  /** Ends every process of the command, for certain. */
  kill(): void;
  /** From now on the outputs are read and thrown away. */
  discard(): void;
}

/** A process inside a world, as `world status` lists it. */
export type WorldProcess = { readonly pid: number; readonly parent: number; readonly argv: string };

/** A warm world. */
export interface World {
  readonly id: string;
  readonly spec: WorldSpec;
  /** What was achieved, not what was wished. */
  readonly isolation: Isolation;
  /** Process id on the host of the process that holds the world. */
  readonly pid: number;
  /** The mounts that were made, one line each, for people. */
  readonly mounts: readonly string[];
  /** Settles with the cause when the world is gone; never rejects. */
  readonly ended: Promise<string>;
  exec(request: ExecRequest): CommandRun;
  processes(signal: AbortSignal): Promise<readonly WorldProcess[]>;
  /** The changes in the upper layer of an `overlay` project, relative to the project. */
  fsDiff(signal: AbortSignal): Promise<FsDiff>;
  /** Ends every process inside and settles when the world is gone. */
  end(cause: string): Promise<void>;
}

/** Thrown by `start` when a world cannot be made as the spec asks; nothing has run. */
export class WorldUnavailable extends Error {
  override readonly name = "WorldUnavailable";
  readonly hint: string;

  constructor(message: string, hint: string, options?: ErrorOptions) {
    super(message, options);
    this.hint = hint;
  }
}

export interface WorldBackend {
  readonly name: string;
  /** `sha256:` and hex of what refuses system calls in its worlds; null when nothing does. */
  readonly filterHash: string | null;
  /** What a world on this host achieves, found out by making one. Throws {@link WorldUnavailable}. */
  probe(signal: AbortSignal): Promise<Isolation>;
  /**
   * Makes a world and returns it warm: its first command pays no set-up.
   * Throws {@link WorldUnavailable} when any step fails; a half-made world is ended.
   */
  start(id: string, spec: WorldSpec, signal: AbortSignal): Promise<World>;
  /** Removes the layers of an overlay world that has ended: nothing in them is to be kept. */
  dropHeld(world: World): Promise<void>;
  /** Removes the held changes below `root` that are older than `maxAgeMs`; returns how many. */
  expireHeld(root: string, maxAgeMs: number): Promise<number>;
  /** Ends every world of this backend. */
  close(): Promise<void>;
}

/** A backend that was tried and is not used, with its reason and the mend. */
export type RefusedBackend = { readonly backend: string; readonly message: string; readonly hint: string };

/** Which backend was taken, and why none of those before it. */
export type BackendChoice = { readonly backend: string; readonly refused: readonly RefusedBackend[] };
