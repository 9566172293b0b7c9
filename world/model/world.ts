/**
 * The one interface between what decides (broker) and what isolates (a backend): a world's spec, a world, a command in it.
 * `world/backend.ts` shows it to everything above `world/`; every part of `world/` imports it from here.
 *
 * Nobody above this line knows a mount; nobody below it knows a policy, an agent or HTTP.
 * A backend is chosen by what it can do, and what it could not do stands in `Isolation`.
 */
import type { FsDiff, Isolation } from "../../schemas/generated/types.ts";
import type { Ending } from "./endings.ts";
import type { HeldStore } from "./held.ts";
import type { NetworkRules, WorldNetwork } from "./network.ts";
import type { ProgramEvent, ProgramGate } from "./programs.ts";
import type { TelemetryReport, WorldTelemetry } from "./telemetry.ts";

/** How the project appears inside: the host's own files, or an overlay whose upper layer holds every change. */
export type ProjectAccess =
  | { readonly kind: "direct" }
  | { readonly kind: "overlay"; readonly layers: string };

/**
 * Paths are absolute host paths with variables replaced; `/**` at the end means everything below. The deny lists hold
 * patterns (plan/globs.ts), in which a backslash takes the meaning of `*?[]{}` and of itself.
 */
export type FileScope = {
  readonly read: readonly string[];
  readonly denyRead: readonly string[];
  readonly write: readonly string[];
  readonly denyWrite: readonly string[];
  /**
   * Patterns that `denyWrite` would hold, were the changes not held for somebody to look at. They are open as they are spelled;
   * where a link leads from there stays denied, because a change of that has another name. Absent: none.
   */
  readonly held?: readonly string[];
  /** As `denyWrite`, for what stands there: a name that a command makes is the command's. */
  readonly seal: readonly string[];
  /**
   * Those of `seal` that name files whose replacement by a command `ExecRequest.replacements` judges, where the file stands in a
   * folder with a sealed folder `hooks`. Absent: none.
   */
  readonly judged?: readonly string[];
  /** Folders (`path/**`) whose writes stay in the world; where `write` opens a place too, `write` holds. Absent: none. */
  readonly scratch?: readonly string[];
};

/** A folder that `files.write` opens, as the host had it when the world was asked for. */
export type WritePlace = {
  readonly path: string;
  /** Which folder that is: another one under the same name is for another world. Null: there is none. */
  readonly identity: string | null;
  /** Why there is none, to stand after a colon. */
  readonly why: string | null;
};

/** Upper bounds of one world and everything in it; an absent one is not set. */
export type WorldLimits = {
  /** CPUs: 0.5 is half of one. */
  readonly cpu?: number;
  /** Bytes. */
  readonly memory?: number;
  /** Processes and threads at once; absent is 4096, so that a fork bomb never takes the host. */
  readonly pids?: number;
  /** Bytes of what the world keeps of its own: `/tmp` and the like, and stray writes. */
  readonly disk?: number;
};

/** A file of a program's settings as one world has it, in a folder of the host's that commands cannot write. Absolute real path. */
export type SettingsFile = { readonly path: string; readonly text: string };

/** A Unix socket of the host that a world's commands may connect to. */
export type SharedSocket = {
  /** Real path on the host. */
  readonly source: string;
  /** Path in the world. */
  readonly target: string;
  /** Which socket that is: a server that was started again has another one under the same name, and is in another world. */
  readonly identity: string;
  /** Of the two folders above `target`, where the world makes them; absent: as any. */
  readonly folderMode?: string;
};

/** All that makes one world differ from another. Two equal specs may share a world. */
export type WorldSpec = {
  readonly project: string;
  /** Which folder that is: another one under the same name is another world. */
  readonly identity: string;
  readonly access: ProjectAccess;
  /** Where git keeps what belongs to the project, when that is not in it: in its place wherever it lies, never an overlay. */
  readonly gitFolder?: string;
  readonly files: FileScope;
  /** The folders of `files.write` outside the project; absent: nobody looked. */
  readonly places?: readonly WritePlace[];
  /** Never visible inside: the broker's own folder. */
  readonly hidden: readonly string[];
  /** Visible and never writable, whatever `files.write` says: the running installation. */
  readonly sealed: readonly string[];
  readonly limits: WorldLimits;
  /**
   * `log`: what would have been refused is let through and told to `onViolation`; what little stays refused, because
   * files or network hang on it, is told as well.
   */
  readonly seccomp: "enforce" | "log";
  /**
   * What stands before the host's own files, or where the host has none; absent: nothing. Where a folder takes no overlay, or
   * the world has no network to join, they are not there.
   */
  readonly settings?: readonly SettingsFile[];
  /** Absent: none. One that a list denies, or that is gone, is not there. */
  readonly sockets?: readonly SharedSocket[];
  /** Absent: no command of it can have `onTelemetry`. */
  readonly telemetry?: true;
  /** The one part that a world takes anew while it lives, with `WorldNetwork.allow`. */
  readonly network: NetworkRules;
};

/** Whose a socket is. */
export type SocketOwner = { readonly run: CommandRun; readonly pid: number; readonly program: string };

/** Something that a command did against the rules of its world: refused, undone, ended or (by policy) only noted. */
export type WorldViolation = {
  readonly kind: "system_call" | "denied_name" | "limit" | "name" | "connection" | "write" | "setting";
  /** The system call, the path, the limit, the name that was looked up, or `host:port`; of a write, the path that was refused. */
  readonly subject: string;
  /** A sentence for people: what happened, and what was done about it. */
  readonly message: string;
};

/** What a command would put in the place of a sealed file, or where it is missing, by a rename. */
export type Replacement = {
  /** Absolute real path. */
  readonly path: string;
  /** Empty also where no file stands. */
  readonly before: Uint8Array;
  readonly after: Uint8Array;
};

/** What tells a file and its content from others, as stat(2) has it. */
export type FileIdentity = {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly size: bigint;
  readonly mtimeNs: bigint;
};

/** Whoever knows what such files may hold. */
export type ReplacementJudge = {
  /** Undefined: the host's file becomes what the command wrote. Otherwise the call fails with EPERM, and the violation is told. */
  readonly judge: (replacement: Replacement) => WorldViolation | undefined;
  /** From now on the host's file may hold it: this file, which no command can write. */
  readonly accepted: (path: string, file: FileIdentity, content: Uint8Array) => void;
};

/** Whoever knows what commands made. Absolute paths. */
export type RemovalJudge = {
  /** Whether a command made the repository that a sealed file or folder belongs to. */
  readonly mayRemove: (path: string) => boolean;
  /** Whether commands made all that is sealed below a folder, in the moment in which it settles. Never rejects. */
  readonly mayMove: (folder: string) => Promise<boolean>;
};

/** Bytes that a command gets on a descriptor and that no other process ever sees: not in arguments, variables or files. */
export type MemoryFile = {
  /** The variable that holds the descriptor's number, whatever `env` says. */
  readonly variable: string;
  /** At most 64 KiB. */
  readonly bytes: Uint8Array;
};

export type ExecRequest = {
  /** The program and its words; a program without a slash is looked up in `env.PATH`. */
  readonly argv: readonly string[];
  /** Absolute, as seen inside (paths inside equal paths outside). */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** All of standard input; absent means `/dev/null`. */
  readonly stdin: Uint8Array | undefined;
  /** What this command alone may read, from a file in memory that nobody can change; absent means none. */
  readonly memoryFile?: MemoryFile | undefined;
  /** What happens to processes that outlive the main one. */
  readonly background: "kill" | "keep";
  /** Output bytes the caller accepts before it calls `grant`; stdout and stderr share them. */
  readonly window: number;
  /** The buffer is the caller's to keep only during the call. */
  readonly onOutput: (stream: "stdout" | "stderr", bytes: Uint8Array) => void;
  /** Called before `ending` settles for all that is known by then. */
  readonly onViolation: (violation: WorldViolation) => void;
  /** Holds at each program that the command starts, not at its own; absent: none. */
  readonly gate?: ProgramGate | undefined;
  /** Asked about each replacement of a file of `FileScope.judged`; absent: each fails. */
  readonly replacements?: ReplacementJudge | undefined;
  /** Asked about what a seal keeps from being removed or moved; absent: it stays. */
  readonly removals?: RemovalJudge | undefined;
  /** Called with the absolute path of each git folder that a process made which outlived its command; absent: nobody is. */
  readonly onBrought?: ((folder: string) => void) | undefined;
  /**
   * Called with an absolute path that turned up in a git folder which somebody else makes at this moment. It is sealed: no command of
   * this world can write it, and whoever is called takes out what of it runs code. Absent: it is taken out whatever it holds.
   */
  readonly onSealed?: ((path: string) => void) | undefined;
  /**
   * In order, in batches, all of them before `ending` settles but for processes that are kept. `untold` counts programs that
   * were more than can be told.
   */
  readonly onPrograms?: ((events: readonly ProgramEvent[], untold: number) => void) | undefined;
  /** What its programs say of themselves, where `World.telemetry` is on; absent: nothing is loaded into them. */
  readonly onTelemetry?: ((report: TelemetryReport) => void) | undefined;
};

/** One running command. */
export interface CommandRun {
  /** Settles when the main process has ended and all it wrote was handed to `onOutput`; never rejects. */
  readonly ending: Promise<Ending>;
  /** Settles when both outputs are closed as well and nothing of the command is left. Never rejects. */
  readonly closed: Promise<void>;
  /**
   * What it changed in a project that it writes to directly, relative to that; asked once, after `ending`. What could not
   * be seen, or not before `signal`, stands in `summary`.
   */
  changes(signal: AbortSignal): Promise<FsDiff>;
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

/** Absolute paths. */
export type Settled = {
  /** Files and folders that no command can change any more. */
  readonly sealed: readonly string[];
  /** Git folders in which a process that lives on may change anything still, and the name of the error that is why. */
  readonly unsealed: readonly { readonly folder: string; readonly why: string }[];
};

/** Writes that stayed in a world. Absolute paths, at most `MAX_FILES` of the `count` that there are. */
export type Strayed = { readonly paths: readonly string[]; readonly count: number };

/** A warm world. */
export interface World {
  readonly id: string;
  readonly spec: WorldSpec;
  /** Wall clock, ns since the epoch, just before the overlay was mounted, as the kernel stamps files; null without one. */
  readonly mountedAt: bigint | null;
  /** What was achieved, not what was wished. */
  readonly isolation: Isolation;
  /** Process id on the host of the process that holds the world. */
  readonly pid: number;
  /** The limits that hold, by name, as people read them; one that this host cannot carry out is not there. */
  readonly limits: Readonly<Record<string, string>>;
  /** The mounts that were made, one line each, for people. */
  readonly mounts: readonly string[];
  /** Settles with the cause when the world is gone; never rejects. */
  readonly ended: Promise<string>;
  /** Null where this host has no way to make one: the world has its own localhost and nothing else. */
  readonly network: WorldNetwork | null;
  readonly telemetry?: WorldTelemetry | undefined;
  exec(request: ExecRequest): CommandRun;
  /** The first process that has the socket of that inode open; null when there is none any more, or none that may be looked at. */
  ownerOf(inode: number): Promise<SocketOwner | null>;
  processes(signal: AbortSignal): Promise<readonly WorldProcess[]>;
  /** The changes in the upper layer of an `overlay` project, relative to the project. */
  fsDiff(signal: AbortSignal): Promise<FsDiff>;
  /** Moves what a command made at an absolute path out of the project. Returns where it lies now; throws what the kernel says. */
  takeOut(path: string): string;
  /** Whether no command can write what stands at an absolute path, because it is sealed. False of a world that is gone. */
  isSealed(path: string): Promise<boolean>;
  /**
   * Seals git folders that commands made: those with an absolute path in `folders`, and all when no command runs. `mayBeMore`: a
   * listing lacks some. Nobody has judged yet what is sealed. Never rejects.
   */
  settle(folders: readonly string[], mayBeMore: boolean): Promise<Settled>;
  /** Writes that stayed in the world, each told once. */
  strays(): Promise<Strayed>;
  /** Ends every process inside and settles when the world is gone. */
  end(cause: string): Promise<void>;
}

export interface WorldBackend {
  readonly name: string;
  /** What isolated commands leave to be applied or not; null where their overlays are not on this host. */
  readonly held: HeldStore | null;
  /** `sha256:` and hex of what refuses system calls in such worlds, or tells of them; null when nothing does. */
  filterHash(seccomp: WorldSpec["seccomp"]): string | null;
  /** What a world on this host achieves, found out by making one. Throws {@link WorldUnavailable}. */
  probe(signal: AbortSignal): Promise<Isolation>;
  /**
   * Whether isolated commands get their overlay here, found out by making one, off every path; absent where nobody can tell
   * without a command. A word of {@link Isolation}.
   */
  tryOverlay?(signal: AbortSignal): Promise<string>;
  /** Warm: its first command pays no set-up. Throws {@link WorldUnavailable}; a half-made world is ended. */
  start(id: string, spec: WorldSpec, signal: AbortSignal): Promise<World>;
  /** Removes the layers of an overlay world that has ended: nothing in them is to be kept. */
  dropHeld(world: World): Promise<void>;
  /** Removes the held changes below `root` that are older than `maxAgeMs`; returns how many. */
  expireHeld(root: string, maxAgeMs: number): Promise<number>;
  /**
   * Removes what an earlier broker that was killed left below `root`; `mayHold` says of a span whether anybody could
   * still ask for its changes. Layers that nothing was written to go whatever it says. The names are read before the
   * call returns: what comes later is not touched. Settles with how many were removed.
   */
  dropLeft(root: string, mayHold: (span: string) => boolean): Promise<number>;
  /** Ends every world of this backend. */
  close(): Promise<void>;
}

/** A backend that was tried and is not used, with its reason and the mend. */
export type RefusedBackend = { readonly backend: string; readonly message: string; readonly hint: string };

/** Which backend was taken, and why none of those before it. */
export type BackendChoice = { readonly backend: string; readonly refused: readonly RefusedBackend[] };
