/** Programs that a command starts, as the kernel is asked to start them: told, and gated, at each execve. */

import { FRAME_START_PATIENCE_MS } from "../../schemas/generated/frames.ts";

/** A file that the kernel will run: the one that was asked for, then what its `#!` line or a dynamic loader makes of it. */
export type ProgramFile = {
  /** As it was asked for, or as the `#!` line or the loader's argument has it; empty for a descriptor. */
  readonly called: string;
  /** Its real path inside; null for one without a name: a file in memory, or one that was removed. */
  readonly path: string | null;
  /** What it gets: `argv[0]` is the caller's to choose. */
  readonly argv: readonly string[];
  /** Of the names that the gate asks about, those whose program is this very file or has the same bytes. */
  readonly same: readonly string[];
};

/** A start that waits for an answer, or is told because a rule may concern it. */
export type ProgramStart = {
  /** Process id inside. */
  readonly pid: number;
  /** The program that starts it, where that has the same name: its real path, and the words that it runs with. */
  readonly starter?: { readonly path: string; readonly argv: readonly string[] };
  /** What was asked for comes first, what runs in the end last. */
  readonly files: readonly [ProgramFile, ...ProgramFile[]];
  /** There are more words, or longer ones, than are told here. */
  readonly cut: boolean;
  /** Why it is not known what would run; null: it is known. */
  readonly unread: string | null;
};

/** Which starts are asked about, and who answers. */
export type ProgramGate = {
  /**
   * Names of programs that a rule may concern, as the last part of a path; the others start without a question. One with a `*`,
   * which stands for any characters, is a pattern of such names, or of a whole path where it has a `/`. Copies, links and `#!`
   * lines of them are found. `all`: each start is asked about, and `names` only serves to find copies.
   */
  readonly names: readonly string[];
  readonly all: boolean;
  /** Absolute folders where programs of these names may lie, besides those where systems keep them: the command's PATH. */
  readonly folders?: readonly string[];
  /** False: everything starts at once, and what `names` concern is told afterwards; the answer changes nothing. */
  readonly refuses: boolean;
  /**
   * True: it may start. Whoever needs longer than `PROGRAM_PATIENCE_MS` says so with `wait` before that is over; without an answer in
   * time the start is refused (EACCES). Never rejects.
   */
  readonly decide: (start: ProgramStart, wait: (milliseconds: number) => void) => boolean | Promise<boolean>;
};

/** How long a start waits for its answer unless it is told to wait longer. */
export const PROGRAM_PATIENCE_MS = FRAME_START_PATIENCE_MS;

/** One line of the tree of programs that a command is. Times are wall clock, ns since the epoch. */
export type ProgramEvent =
  | {
      readonly kind: "started";
      /** Counts from 1 in each command; refused ones count too. The command's own program is not told of. */
      readonly number: number;
      /** Number of the program whose process, or whose fork's, asked; 0: the command's own. */
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
      /** Exactly one is a number, or both are null: this kernel tells it to the parent alone (before Linux 6.15), or another program took its process over (`replaced`). */
      readonly code: number | null;
      readonly signal: number | null;
      readonly replaced: boolean;
    };
