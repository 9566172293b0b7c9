/**
 * Messages between a broker and a world agent: the backend's interface for a broker whose worlds are on another machine. Every call,
 * question and report has its row here. `calls` are answered or refused, `tells` are not; bytes of a running command travel as binary
 * messages beside them ({@link BYTES}).
 */
import type { FsDiff, Isolation } from "../../schemas/generated/types.ts";
import type { Ending } from "../model/endings.ts";
import type { ApplyEnding, Held, HeldChange, HeldSide, Settled as Recovered, Waiter } from "../model/held.ts";
import type { NetworkRules } from "../model/network.ts";
import type { ProgramEvent, ProgramGate, ProgramStart } from "../model/programs.ts";
import type { TelemetryReport, WorldTelemetry } from "../model/telemetry.ts";
import type {
  ExecRequest,
  FileIdentity,
  MemoryFile,
  Replacement,
  Settled,
  Strayed,
  TerminalSize,
  WorldProcess,
  WorldSpec,
  WorldViolation,
} from "../model/world.ts";

/** Raise with every change of a message: each side refuses another number, and never guesses. */
export const PROTOCOL = 1;

/** Headers of the handshake, both ways. */
export const PROTOCOL_HEADER = "substrate-protocol";
export const VERSION_HEADER = "substrate-version";
/** Names the broker's home, so that brokers of one agent keep their held changes apart. */
export const STORE_HEADER = "substrate-store";
export const STORE = /^[0-9a-f]{16}$/;

export const CONNECT_PATH = "/v1/connect";
export const STREAM_PATH = "/v1/streams/";
export const HEALTH_PATH = "/v1/health";

/** First byte of a binary message; the run's number follows as u32, little-endian. */
export const BYTES = { input: 0, stdout: 1, stderr: 2 } as const;

/** The longest message: standard input of a request (10 MiB) in base64 and a policy's lists fit. */
export const MAX_MESSAGE = 32 * 1024 * 1024;

type Row<Asks, Answers> = { readonly asks: Asks; readonly answers: Answers };

type InWorld = { readonly world: string };
type OfRun = { readonly run: number };
type OfHeld = { readonly held: Held };

/** The agent's first answer. */
export type Welcome = {
  /** The name of the backend at the agent. */
  readonly backend: string;
  readonly filters: Readonly<Record<WorldSpec["seccomp"], string | null>>;
};

/** What a broker knows of a world from its start on. */
export type Started = {
  readonly mountedAt: bigint | null;
  readonly isolation: Isolation;
  readonly pid: number;
  readonly limits: Readonly<Record<string, string>>;
  readonly mounts: readonly string[];
  readonly hasNetwork: boolean;
  readonly telemetry: WorldTelemetry | null;
};

/** An {@link ExecRequest} without its functions. `env` is a list: a variable may have any name. */
export type Exec = OfRun &
  InWorld &
  Pick<ExecRequest, "argv" | "cwd" | "background" | "window"> & {
    readonly env: readonly (readonly [name: string, value: string])[];
    readonly stdin: Uint8Array | null;
    readonly live: { readonly terminal: TerminalSize | null; readonly isJob: boolean } | null;
    readonly isOneOutput: boolean;
    readonly umask: number | null;
    readonly memoryFile: MemoryFile | null;
    readonly stateFile: { readonly path: string; readonly script: Uint8Array } | null;
    readonly gate: Omit<ProgramGate, "decide"> | null;
    /** Which optional functions the request has. */
    readonly listens: Readonly<
      Record<"replacements" | "removals" | "onBrought" | "onSealed" | "onPrograms" | "onTelemetry", boolean>
    >;
  };

/** The number of layers removed, and the names of the broker's layers that are left. */
export type Swept = { readonly removed: number; readonly left: readonly string[] };

/** Answered by the agent. */
export type AgentCalls = {
  welcome: Row<null, Welcome>;
  probe: Row<null, Isolation>;
  tryOverlay: Row<null, string>;
  start: Row<{ readonly id: string; readonly spec: WorldSpec }, Started>;
  changes: Row<OfRun, FsDiff>;
  owner: Row<InWorld & { readonly inode: number }, { run: number; pid: number; program: string } | null>;
  processes: Row<InWorld, readonly WorldProcess[]>;
  fsDiff: Row<InWorld, FsDiff>;
  isSealed: Row<InWorld & { readonly path: string }, boolean>;
  settle: Row<InWorld & { readonly folders: readonly string[]; readonly mayBeMore: boolean }, Settled>;
  strays: Row<InWorld, Strayed>;
  end: Row<InWorld & { readonly cause: string }, null>;
  allow: Row<InWorld & { readonly rules: NetworkRules }, null>;
  flush: Row<InWorld, null>;
  /** Answers with the token of a stream. */
  dial: Row<InWorld & { readonly port: number }, string>;
  dropHeld: Row<{ readonly layers: string }, null>;
  expireHeld: Row<{ readonly maxAgeMs: number }, Swept>;
  dropLeft: Row<null, Swept>;
  heldRecover: Row<null, readonly Recovered[]>;
  heldLook: Row<OfHeld, null>;
  heldList: Row<OfHeld & { readonly waiter: Waiter }, readonly HeldChange[]>;
  heldContent: Row<
    OfHeld & { readonly path: string; readonly limit: number },
    { readonly before: Uint8Array | null; readonly after: Uint8Array | null; readonly truncated: boolean }
  >;
  /** `question` names the apply in `isDenied`. */
  heldApply: Row<
    OfHeld & { readonly paths: readonly string[] | null; readonly question: number },
    ApplyEnding
  >;
  heldUndo: Row<OfHeld & { readonly paths: readonly string[] | null }, ApplyEnding>;
  heldDiscard: Row<OfHeld & { readonly paths: readonly string[] | null }, ApplyEnding>;
  /** Opens both trees of held changes; answers with a number and the project's identity. */
  sidesOpen: Row<OfHeld, { readonly sides: number; readonly identity: string }>;
  sidesBefore: Row<{ readonly sides: number; readonly path: string }, HeldSide>;
  sidesAfter: Row<{ readonly sides: number; readonly change: Pick<HeldChange, "path" | "kind"> }, HeldSide>;
  sidesContent: Row<
    {
      readonly sides: number;
      readonly side: "before" | "after";
      readonly path: string;
      readonly limit: number;
    },
    Uint8Array | null
  >;
  sidesBelow: Row<
    { readonly sides: number; readonly folder: string; readonly limit: number },
    { readonly paths: readonly string[]; readonly more: boolean }
  >;
  sidesClose: Row<{ readonly sides: number }, null>;
};

/** Told to the agent. */
export type AgentTells = {
  exec: Exec;
  grant: OfRun & { readonly bytes: number };
  endInput: OfRun;
  resize: OfRun & { readonly size: TerminalSize };
  interrupt: OfRun & { readonly name: NodeJS.Signals };
  signal: OfRun & { readonly name: NodeJS.Signals };
  kill: OfRun;
  discard: OfRun;
  /** A decision about a start takes longer. */
  wait: { readonly question: number; readonly ms: number };
  listen: InWorld;
  takeDns: InWorld;
  closeDns: InWorld;
  datagram: Datagram;
};

/** Answered by the broker. No answer is a no. */
export type BrokerCalls = {
  decide: Row<OfRun & { readonly question: number; readonly start: ProgramStart }, boolean>;
  judge: Row<OfRun & { readonly replacement: Replacement }, WorldViolation | null>;
  accepted: Row<
    OfRun & { readonly path: string; readonly file: FileIdentity; readonly content: Uint8Array },
    null
  >;
  mayRemove: Row<OfRun & { readonly path: string }, boolean>;
  mayMove: Row<OfRun & { readonly folder: string }, boolean>;
  /** Returns those of the spans whose changes a client could still ask for. */
  mayHold: Row<{ readonly spans: readonly string[] }, readonly string[]>;
  /** Returns those of the paths that the policy forbids everybody to write. */
  isDenied: Row<{ readonly question: number; readonly paths: readonly string[] }, readonly string[]>;
};

/** Told to the broker. */
export type BrokerTells = {
  ending: OfRun & { readonly ending: Ending };
  closed: OfRun;
  violation: OfRun & { readonly violation: WorldViolation };
  taken: OfRun & { readonly bytes: number };
  stopped: OfRun & { readonly signal: string };
  state: OfRun & { readonly content: Uint8Array };
  brought: OfRun & { readonly folder: string };
  sealed: OfRun & { readonly path: string };
  programs: OfRun & { readonly events: readonly ProgramEvent[]; readonly untold: number };
  telemetry: OfRun & { readonly report: TelemetryReport };
  isolation: InWorld & { readonly isolation: Isolation };
  ended: InWorld & { readonly cause: string };
  captured: InWorld & {
    readonly stream: string;
    readonly address: string;
    readonly port: number;
    readonly inode: number;
  };
  datagram: Datagram;
  dnsStream: InWorld & { readonly stream: string };
};

/** A message at the world's name server, and its answer. */
export type Datagram = InWorld & {
  readonly bytes: Uint8Array;
  readonly port: number;
  readonly address: string;
};

/** The agent's answer to a health check. */
export type AgentHealth = {
  readonly protocol: number;
  readonly version: string;
  readonly state: "serving" | "draining";
  readonly backend: string;
  readonly brokers: number;
  readonly worlds: number;
};
