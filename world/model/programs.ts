/** Programs started by a command: every execve is reported, and gated, before the kernel carries it out. */

/** A file that the kernel will run: first the requested file, then the files added by a `#!` line or a dynamic loader. */
export type ProgramFile = {
  /** The path as requested, or as written in the `#!` line or the loader's argument; empty for a descriptor. */
  readonly called: string;
  /** Real path inside; null for a file without a name: a file in memory, or a removed file. */
  readonly path: string | null;
  /** The program's arguments; the caller chooses `argv[0]` freely. */
  readonly argv: readonly string[];
  /** Those of the gate's names whose program is this very file or has the same bytes. */
  readonly same: readonly string[];
};

/** A start waiting for an answer, or reported because a rule may concern it. */
export type ProgramStart = {
  /** Process id inside. */
  readonly pid: number;
  /** Real path of the working folder inside; null for a removed folder, or one of another mount namespace. */
  readonly folder: string | null;
  /** The starting program, if it has the same name: its real path and its own arguments. */
  readonly starter?: { readonly path: string; readonly argv: readonly string[] };
  /** The requested file first, the file that finally runs last. */
  readonly files: readonly [ProgramFile, ...ProgramFile[]];
  /** More or longer arguments exist than listed here. */
  readonly cut: boolean;
  /** Why the file to run is unknown; null: known. */
  readonly unread: string | null;
};

/** Which starts need an answer, and the function that answers. */
export type ProgramGate = {
  /**
   * Names of programs with a rule, as the last part of a path; other programs start without a question. A name with `*` (any
   * characters) is a pattern for names, or with a `/` for whole paths. Copies, links and `#!` lines of these programs are
   * recognised. `all`: every start needs an answer, and `names` only serves to find copies.
   */
  readonly names: readonly string[];
  readonly all: boolean;
  /** Absolute folders to search for programs of these names, besides the system's usual folders: the command's PATH. */
  readonly folders?: readonly string[];
  /** False: every program starts at once; starts that match `names` are reported afterwards, and the answer has no effect. */
  readonly refuses: boolean;
  /**
   * Returns true to allow the start. A slower decision must call `wait` within `FRAME_START_PATIENCE_MS`; without an answer in time
   * the start is refused (EACCES). Never rejects.
   */
  readonly decide: (start: ProgramStart, wait: (milliseconds: number) => void) => boolean | Promise<boolean>;
};

/** One line of a command's program tree. Times are wall clock, ns since the epoch. */
export type ProgramEvent =
  | {
      readonly kind: "started";
      /** Counts from 1 in each command, refused starts included. The command's own program is not reported. */
      readonly number: number;
      /** Number of the program that asked, by its own process or a fork; 0: the command's own program. */
      readonly parent: number;
      readonly pid: number;
      readonly path: string;
      /** At most 4 KiB in all. */
      readonly argv: readonly string[];
      readonly cut: boolean;
      readonly at: bigint;
    }
  | {
      readonly kind: "refused";
      readonly parent: number;
      readonly pid: number;
      readonly path: string;
      readonly argv: readonly string[];
      readonly cut: boolean;
      readonly at: bigint;
    }
  | {
      readonly kind: "ended";
      readonly number: number;
      readonly at: bigint;
      /**
       * Exactly one of the two is a number. Both are null when the kernel tells only the parent (before Linux 6.15), or when
       * another program took over the process (`replaced`).
       */
      readonly code: number | null;
      readonly signal: number | null;
      readonly replaced: boolean;
    };
