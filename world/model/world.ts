/**
 * Interface between the broker, which decides, and a backend, which isolates: a world's spec, a world, a command. `world/backend.ts`
 * exports it to everything above `world/`; modules of `world/` import this file.
 *
 * Code above the interface knows no mounts; code below knows no policy, no agent and no HTTP. A backend is chosen by its
 * abilities, and reports every missing isolation in `Isolation`.
 */
import { FRAME_INPUT_WINDOW } from "../../schemas/generated/frames.ts";
import type { FsDiff, Isolation } from "../../schemas/generated/types.ts";
import type { Ending } from "./endings.ts";
import type { HeldStore } from "./held.ts";
import type { Asker, Dialled, NetworkRules, WorldNetwork } from "./network.ts";
import type { ProgramEvent, ProgramGate } from "./programs.ts";
import type { TelemetryReport, WorldTelemetry } from "./telemetry.ts";

/** How the project appears inside: the host's own files, or an overlay with every change in its upper layer. */
export type ProjectAccess =
  | { readonly kind: "direct" }
  | { readonly kind: "overlay"; readonly layers: string };

/**
 * Absolute host paths with variables replaced; `/**` at the end means everything below. The deny lists hold patterns
 * (plan/globs.ts), in which a backslash escapes `*?[]{}` and itself.
 */
export type FileScope = {
  readonly read: readonly string[];
  readonly denyRead: readonly string[];
  readonly write: readonly string[];
  readonly denyWrite: readonly string[];
  /**
   * Patterns taken out of `denyWrite` because a person reviews the held changes. Writes through the pattern's own spelling are
   * allowed. The target of a link on the path stays denied: a change there would have another name. Absent: empty.
   */
  readonly held?: readonly string[];
  /** As `denyWrite`, but only for existing names: a name made by a command stays writable. */
  readonly seal: readonly string[];
  /** Patterns of `seal` for files that `ExecRequest.replacements` judges, if their folder has a sealed `hooks`. Absent: empty. */
  readonly judged?: readonly string[];
  /** Folders (`path/**`) whose writes stay in the world; `write` takes precedence. Absent: empty. */
  readonly scratch?: readonly string[];
};

/** A folder opened by `files.write`, as found on the host when the world was requested. */
export type WritePlace = {
  readonly path: string;
  /** Identifies the folder itself: a folder replaced under the same name needs a new world. Null: no folder there. */
  readonly identity: string | null;
  /** Reason for a null `identity`, worded to follow a colon. */
  readonly why: string | null;
};

/** Upper bounds of a whole world; an absent bound is not set. */
export type WorldLimits = {
  /** CPUs: 0.5 is half of one. */
  readonly cpu?: number;
  /** Bytes. */
  readonly memory?: number;
  /** Processes and threads at once; the default 4096 keeps a fork bomb from taking the host. */
  readonly pids?: number;
  /** Bytes of the world's own storage: `/tmp` and the like, and stray writes. */
  readonly disk?: number;
};

/** A settings file of a program with the world's own content, in a host folder that commands cannot write. Absolute real path. */
export type SettingsFile = { readonly path: string; readonly text: string };

/** A Unix socket of the host, open to connections from the world's commands. */
export type SharedSocket = {
  /** The policy's word for the socket, which the isolation vector repeats. */
  readonly name: string;
  /** Real path on the host. */
  readonly source: string;
  /** Path in the world. */
  readonly target: string;
  /** Identifies the socket itself: a restarted server has a new socket under the same name, and needs a new world. */
  readonly identity: string;
  /** Mode of the two folders above `target`, where the world makes them; absent: the usual mode. */
  readonly folderMode?: string;
  /** The broker answers there, so only a world on the broker's machine reaches it. */
  readonly isBrokers?: true;
};

/** A folder of the broker's, shown writable in place of the user's home. */
export type OwnHome = {
  /** Real path of the user's home. Below it a world shows only what `files` names there, the project and its git folder. */
  readonly path: string;
  /** Real path of the folder on the host. */
  readonly folder: string;
  /** Identifies the folder itself: a folder replaced under the same name needs a new world. */
  readonly identity: string;
  /** Identifies the first folder in it on the way to the project: who empties the home takes the mounts of warm worlds away. Null: none. */
  readonly way: string | null;
};

/** Everything in which worlds differ. Two equal specs may share a world. */
export type WorldSpec = {
  readonly project: string;
  /** Identifies the project folder itself: a folder replaced under the same name needs a new world. */
  readonly identity: string;
  readonly access: ProjectAccess;
  /** Git folder outside the project (worktree, submodule): bound at its own path, never an overlay. */
  readonly gitFolder?: string;
  /** Absent: the user's home is a host tree like others. Only with direct access. */
  readonly ownHome?: OwnHome;
  readonly files: FileScope;
  /** The folders of `files.write` outside the project; absent: not looked up. */
  readonly places?: readonly WritePlace[];
  /** Never visible inside: the broker's own folder. */
  readonly hidden: readonly string[];
  /** Visible but never writable, whatever `files.write` says: the running installation. */
  readonly sealed: readonly string[];
  readonly limits: WorldLimits;
  /**
   * `log`: calls normally refused are allowed and reported to `onViolation`. A few calls stay refused, because files or network
   * depend on the refusal; those are reported too.
   */
  readonly seccomp: "enforce" | "log";
  /** The world keeps the host's network namespace; absent: it has its own. */
  readonly hostNetwork?: true;
  /** Commands may make namespaces of their own, as far as the world can hold then; absent: they may not. */
  readonly namespaces?: "allow";
  /**
   * Shown in place of the host's files, or added where the host has no such file; absent: empty. Dropped where a folder takes no
   * overlay, or where the world has no network to join.
   */
  readonly settings?: readonly SettingsFile[];
  /** Absent: empty. A socket that is denied by a list or no longer exists is left out. */
  readonly sockets?: readonly SharedSocket[];
  /** Absent: commands of the world cannot have `onTelemetry`. */
  readonly telemetry?: true;
  /** The only part that changes during the world's life, by `WorldNetwork.allow`. */
  readonly network: NetworkRules;
};

/** The command and process that own a socket. */
export type SocketOwner = { readonly run: CommandRun; readonly pid: number; readonly program: string };

/** A command's breach of its world's rules: refused, undone, ended or (by policy) only noted. */
export type WorldViolation = {
  readonly kind:
    | "system_call"
    | "namespace"
    | "denied_name"
    | "limit"
    | "name"
    | "connection"
    | "write"
    | "setting";
  /** The system call, path, limit, looked-up name or `host:port`; for a write, the refused path. */
  readonly subject: string;
  /** A sentence for people: the event, and the reaction to it. */
  readonly message: string;
  /** The address of a TCP connection that the world's network refused: the broker knows the rule behind the refusal. */
  readonly dialled?: Dialled | undefined;
};

/** A rename with which a command would replace or create a sealed file. */
export type Replacement = {
  /** Absolute real path. */
  readonly path: string;
  /** Empty also for a missing file. */
  readonly before: Uint8Array;
  readonly after: Uint8Array;
};

/** Fields of stat(2) that identify a file and its content. */
export type FileIdentity = {
  readonly dev: bigint;
  readonly ino: bigint;
  readonly size: bigint;
  readonly mtimeNs: bigint;
};

/** Decides about the content of sealed settings files. */
export type ReplacementJudge = {
  /** Undefined: the command's content replaces the host's file. Otherwise the call fails with EPERM, and the violation is reported. */
  readonly judge: (
    replacement: Replacement,
  ) => WorldViolation | undefined | Promise<WorldViolation | undefined>;
  /**
   * Called, and awaited, before the host's file gets the content: `file` is the new file, which no command can write. A rejection leaves
   * the file as it was.
   */
  readonly accepted: (path: string, file: FileIdentity, content: Uint8Array) => void | Promise<void>;
};

/** Knows which files commands made. Absolute paths. */
export type RemovalJudge = {
  /** Whether a command made the repository around a sealed file or folder. */
  readonly mayRemove: (path: string) => boolean | Promise<boolean>;
  /** Whether commands made everything sealed below a folder, when the promise settles. Never rejects. */
  readonly mayMove: (folder: string) => Promise<boolean>;
};

/** Bytes passed to a command on a descriptor, hidden from every other process: not in arguments, variables or files. */
export type MemoryFile = {
  /** The variable for the descriptor's number; overrides `env`. */
  readonly variable: string;
  /** At most 64 KiB. */
  readonly bytes: Uint8Array;
};

/** A file by which a command's own shell reports its state. */
export type StateFile = {
  /** Absolute, as seen inside: a new file in a folder of the world's own; at most 64 bytes. */
  readonly path: string;
  /** What the shell reads first, from a sealed memory file (FRAME_STATE_SCRIPT_FD); at most 8 KiB. */
  readonly script: Uint8Array;
  /** Called at most once, before `ending` settles, with at most 128 KiB of whatever the command left in the file. */
  readonly onState: (content: Uint8Array) => void;
};

/** Size of a terminal in characters, each from 1 to 65535. */
export type TerminalSize = { readonly columns: number; readonly rows: number };

/** Standard input sent while the command runs (`CommandRun.input`). */
export type LiveInput = {
  /** The command gets a terminal as input, output and error, and `stdout` carries all that is written to it; absent: pipes. */
  readonly terminal?: TerminalSize | undefined;
  /**
   * With a terminal: makes the command a job, which Ctrl-Z stops; called each time, with the signal. `CommandRun.interrupt` with SIGCONT
   * continues it. Absent: the kernel ignores a stop by the terminal, because nobody could continue the command.
   */
  readonly onStopped?: ((signal: string) => void) | undefined;
  /** Called when bytes have gone to the command, or were dropped because nobody reads. */
  readonly onTaken: (bytes: number) => void;
};

export type ExecRequest = {
  /** The program and its arguments; a program without a slash is looked up in `env.PATH`. */
  readonly argv: readonly string[];
  /** Absolute, as seen inside (inside and outside paths are the same). */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** All of standard input; absent means `/dev/null`. */
  readonly stdin: Uint8Array | undefined;
  /** Takes the place of `stdin`. */
  readonly live?: LiveInput | undefined;
  /** Whether standard error is standard output's pipe: `stdout` then carries both, in the order written. Not with a terminal. */
  readonly isOneOutput?: boolean | undefined;
  /** Absent: 022. */
  readonly umask?: number | undefined;
  /** Content for this command alone, in a sealed memory file; absent: no file. */
  readonly memoryFile?: MemoryFile | undefined;
  /** Absent: no file, and no report. */
  readonly stateFile?: StateFile | undefined;
  /** Whether to kill or keep processes that outlive the main process. */
  readonly background: "kill" | "keep";
  /** Output bytes, of stdout and stderr together, that init may send before the next `grant`. */
  readonly window: number;
  /** The buffer is valid only during the call. */
  readonly onOutput: (stream: "stdout" | "stderr", bytes: Uint8Array) => void;
  /** Called for every violation known so far before `ending` settles. */
  readonly onViolation: (violation: WorldViolation) => void;
  /** Gates every program started by the command, but not the command's own program; absent: no gate. */
  readonly gate?: ProgramGate | undefined;
  /** Asked about each replacement of a file in `FileScope.judged`; absent: each replacement fails. */
  readonly replacements?: ReplacementJudge | undefined;
  /** Asked when a seal blocks a removal or move; absent: the file stays. */
  readonly removals?: RemovalJudge | undefined;
  /** Called with the absolute path of each git folder made by a process that outlived its command; absent: not reported. */
  readonly onBrought?: ((folder: string) => void) | undefined;
  /**
   * Called with the absolute path of a name that appeared in a git folder while somebody outside the world was making the folder.
   * Init has sealed the name: no command of this world can write to it, and the callee removes the parts that run code. Absent:
   * the name is taken out, whatever its content.
   */
  readonly onSealed?: ((path: string) => void) | undefined;
  /**
   * Called in order, in batches, all before `ending` settles, except for kept processes. `untold` counts programs beyond the
   * reporting limit.
   */
  readonly onPrograms?: ((events: readonly ProgramEvent[], untold: number) => void) | undefined;
  /** Receives the reports of the command's programs where `World.telemetry` is on; absent: no library is loaded into the programs. */
  readonly onTelemetry?: ((report: TelemetryReport) => void) | undefined;
};

/** One running command. */
export interface CommandRun {
  /** Settles when the main process has ended and all its output was passed to `onOutput`; never rejects. */
  readonly ending: Promise<Ending>;
  /** Settles when, in addition, both outputs are closed and no process of the command is left. Never rejects. */
  readonly closed: Promise<void>;
  /**
   * Returns the command's changes in a direct project, relative to the project; call once, after `ending`. Changes not seen, or
   * not before `signal`, are reported in `summary`.
   */
  changes(signal: AbortSignal): Promise<FsDiff>;
  /** Extends the output window by `bytes`. */
  grant(bytes: number): void;
  /** Sends bytes to a live input. At most {@link INPUT_WINDOW} bytes may be sent and not yet taken (`LiveInput.onTaken`). */
  input(bytes: Uint8Array): void;
  /** Ends a live input; at a terminal, types the end-of-file character. */
  endInput(): void;
  /** Changes the size of the command's terminal. */
  resize(size: TerminalSize): void;
  /** Sends a signal to the foreground processes of the command's terminal; without a terminal, to every process. */
  interrupt(name: NodeJS.Signals): void;
  /** Sends a signal to every process of the command. */
  signal(name: NodeJS.Signals): void;
  /** Ends every process of the command unconditionally. */
  kill(): void;
  /** From now on the outputs are read and discarded. */
  discard(): void;
}

/** Most bytes of a live input that a command has not taken. */
export const INPUT_WINDOW = FRAME_INPUT_WINDOW;

/** A process inside a world, as `world status` lists it. */
export type WorldProcess = { readonly pid: number; readonly parent: number; readonly argv: string };

/** Absolute paths. */
export type Settled = {
  /** Files and folders that commands can no longer change. */
  readonly sealed: readonly string[];
  /** Git folders still open to changes by a surviving process, each with the name of the error that prevented the seal. */
  readonly unsealed: readonly { readonly folder: string; readonly why: string }[];
};

/** Writes that stayed in a world. Absolute paths: at most `MAX_FILES` of all `count`. */
export type Strayed = { readonly paths: readonly string[]; readonly count: number };

/** A warm world. */
export interface World {
  readonly id: string;
  readonly spec: WorldSpec;
  /** Wall clock, ns since the epoch, just before the overlay mount, as the kernel stamps files; null without an overlay. */
  readonly mountedAt: bigint | null;
  /** The isolation achieved, not the isolation requested. */
  readonly isolation: Isolation;
  /** Host process id of the process holding the world. */
  readonly pid: number;
  /** The limits in force, by name, as text for people; limits that this host cannot enforce are left out. */
  readonly limits: Readonly<Record<string, string>>;
  /** The mounts of the world as text for people, one line each. */
  readonly mounts: readonly string[];
  /** Settles with the cause when the world has ended; never rejects. */
  readonly ended: Promise<string>;
  /** Null where this host cannot make a network: the world then has only its own localhost. */
  readonly network: WorldNetwork | null;
  readonly telemetry?: WorldTelemetry | undefined;
  exec(request: ExecRequest): CommandRun;
  /** Finds the first process with the socket of that inode open; null when no such process is left or readable. */
  ownerOf(inode: number): Promise<SocketOwner | null>;
  /** Finds the owner of a socket that waits for the world's name server; null if unknown. Absent: never known. Never rejects. */
  askerOf?(asker: Asker): Promise<SocketOwner | null>;
  processes(signal: AbortSignal): Promise<readonly WorldProcess[]>;
  /** The changes in the upper layer of an `overlay` project, relative to the project. */
  fsDiff(signal: AbortSignal): Promise<FsDiff>;
  /** Moves a file or folder made by a command out of the project. Returns the new location; throws the kernel's error. */
  takeOut(path: string): string;
  /** Whether a seal keeps every command from writing an absolute path. False for a world that has ended. */
  isSealed(path: string): Promise<boolean>;
  /**
   * Seals git folders made by commands: the absolute paths in `folders`, and all such folders when no command runs. `mayBeMore`:
   * the caller's listing is incomplete. The sealed content is not judged yet. Never rejects.
   */
  settle(folders: readonly string[], mayBeMore: boolean): Promise<Settled>;
  /** Returns the writes that stayed in the world, each reported once. */
  strays(): Promise<Strayed>;
  /** Ends every process inside, where it can by SIGTERM and a second later by SIGKILL; settles when the world is gone. */
  end(cause: string): Promise<void>;
}

export interface WorldBackend {
  readonly name: string;
  /** Changes left by isolated commands, to be applied or dropped; null where the overlays are not on this host. */
  readonly held: HeldStore | null;
  /** `sha256:` and hex of the filter that refuses or reports system calls in such worlds; null without a filter. */
  filterHash(seccomp: WorldSpec["seccomp"]): string | null;
  /** Makes a world and returns the isolation achieved on this host. Throws {@link WorldUnavailable}. */
  probe(signal: AbortSignal): Promise<Isolation>;
  /**
   * Tries, off the path of any command, whether isolated commands get their overlay on this host; returns a word of
   * {@link Isolation}. Absent where only a real command can tell.
   */
  tryOverlay?(signal: AbortSignal): Promise<string>;
  /** Starts a warm world: the first command pays no set-up. Throws {@link WorldUnavailable} after ending a half-made world. */
  start(id: string, spec: WorldSpec, signal: AbortSignal): Promise<World>;
  /** Removes the layers of an ended overlay world, whatever they hold. */
  dropHeld(world: World): Promise<void>;
  /** Removes held changes below `root` older than `maxAgeMs`; returns their number. */
  expireHeld(root: string, maxAgeMs: number): Promise<number>;
  /**
   * Removes layers below `root` left by a killed broker, unless `mayHold` says that a client could still ask for the span's
   * changes. Layers without writes are always removed. The names are read before the call returns, so later layers are safe.
   * Settles with the number removed.
   */
  dropLeft(root: string, mayHold: (span: string) => boolean): Promise<number>;
  /** Ends every world of this backend. */
  close(): Promise<void>;
}

/** A backend tried and rejected, with the reason and a remedy. */
export type RefusedBackend = { readonly backend: string; readonly message: string; readonly hint: string };

/** The chosen backend, and every backend rejected before. */
export type BackendChoice = { readonly backend: string; readonly refused: readonly RefusedBackend[] };
