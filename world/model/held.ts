/**
 * Changes of an isolated command, not yet visible to anybody else: to be listed, applied to the project, undone or discarded.
 * Paths are byte strings, one letter per byte (names.ts), relative to the project.
 */

/** Wildcard identity, used to discard changes: a discard writes nothing into a project. */
export const ANY_FOLDER = "";

/** Held changes of one span. */
export type Held = {
  /** The folder with `upper`, `work` and the data of applies: the journal and the undo records. */
  readonly layers: string;
  /** Absolute. */
  readonly project: string;
  /** `device:inode` of the command's project, or {@link ANY_FOLDER}: a different folder at the path is not touched. */
  readonly identity: string;
  /** Wall clock, nanoseconds since the epoch, taken just before the overlay was mounted. */
  readonly mountedAt: bigint;
};

/**
 * `write`: a new file; `mod`: a changed file, or another file type in its place; `delete`: removed with everything below; `dir`:
 * a new folder; `link`: a symlink that is new or has a new target; `mode`: only permissions, times, owner or attributes.
 */
export type HeldKind = "write" | "mod" | "delete" | "dir" | "link" | "mode";

/** Properties that an apply sets and no patch can show. */
export type HeldAttribute = "access list" | "extended attributes" | "owner";

export type HeldChange = {
  readonly path: string;
  readonly kind: HeldKind;
  readonly autorun: boolean;
  /** Bytes of the new content; 0 unless a file. */
  readonly size: number;
  /** `st_mode` after the change, type included; 0 for a deletion. */
  readonly mode: number;
  /** Number of the file's names in the layer; 1 unless a file. Names applied together become hard links in the project too. */
  readonly links: number;
  /** Those that differ from the project's entry, or that a new entry has. */
  readonly attributes: readonly HeldAttribute[];
};

/** `mode` has only the permission bits, including setuid, setgid and sticky. */
export type HeldSide =
  | { readonly kind: "none" }
  | { readonly kind: "file"; readonly mode: number; readonly size: number }
  /** `target` as bytes, perhaps not UTF-8. */
  | { readonly kind: "link"; readonly target: Uint8Array }
  | { readonly kind: "folder"; readonly mode: number }
  | { readonly kind: "other"; readonly mode: number };

/** Both trees of held changes, open for reading: a folder that takes a tree's name meanwhile is not read. Byte paths. */
export interface OpenSides {
  /** Returns `device:inode` of the project folder read here. */
  identity(): Promise<string>;
  /** Side before the change: the project's present file. */
  before(path: string): Promise<HeldSide>;
  after(change: Pick<HeldChange, "path" | "kind">): Promise<HeldSide>;
  /** Returns the bytes of a regular file; null if larger than `limit`, or no longer a regular file. */
  content(side: "before" | "after", path: string, limit: number): Promise<Uint8Array | null>;
  /** Lists everything except folders below a project folder, at most `limit`, sorted by name. */
  filesBelow(
    folder: string,
    limit: number,
  ): Promise<{ readonly paths: readonly string[]; readonly more: boolean }>;
  close(): Promise<void>;
}

/** Why a path blocks an apply, in a sentence for people. */
export type PathReason = { readonly path: string; readonly reason: string };

export type ApplyEnding =
  /** `left`: changes still held (or, after an undo, still applied). */
  | { readonly kind: "done"; readonly done: readonly string[]; readonly left: readonly string[] }
  /** The project differs from the command's view, or from its state after the apply. Nothing was changed. */
  | { readonly kind: "conflict"; readonly conflicts: readonly PathReason[] }
  /**
   * Changes forbidden to everybody: setuid, a device, a file capability, a denied name; or a path without a change. Nothing was
   * changed.
   */
  | { readonly kind: "refused"; readonly refusals: readonly PathReason[] }
  /** The host failed (a full disk). The message says that the project is unchanged, or names the paths not put back. */
  | { readonly kind: "failed"; readonly message: string };

/** Result of an apply or undo interrupted by the broker's death: a sentence, and the span of the changes. */
export type Settled = { readonly span: string; readonly message: string };

/**
 * Who waits for a listing: a person before the broker itself, and both before agents, of whom only a few may wait for one project.
 */
export type Waiter = "operator" | "broker" | "agent";

/** Thrown when held changes are not read. The code, unlike the class, also comes from a world agent. */
export class HeldUnread extends Error {
  override readonly name = "HeldUnread";
  readonly code: "HELD_TOO_LARGE" | "HELD_BUSY";

  constructor(code: HeldUnread["code"], message: string) {
    super(message);
    this.code = code;
  }
}

export function isTooLarge(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === "HELD_TOO_LARGE";
}

export function isCrowded(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).code === "HELD_BUSY";
}

export interface HeldStore {
  /** Opens both trees; call `close` afterwards. Throws when a tree cannot be opened. */
  sides(held: Held): Promise<OpenSides>;
  /**
   * Saves the project's present state (`seen` in the layers), the baseline of every later apply: call as soon as the command has
   * ended, off its path. Does nothing if already saved. Throws when the state cannot be read or saved.
   */
  look(held: Held, signal: AbortSignal): Promise<void>;
  /**
   * Lists the changes, sorted by path, byte by byte; the first call saves the project's state as `look` does. Throws when the
   * layers cannot be read, and {@link HeldUnread}.
   */
  list(held: Held, signal: AbortSignal, waiter: Waiter): Promise<readonly HeldChange[]>;
  /** Reads both sides of a regular file, at most `limit` bytes each; null for a side without a file. Follows no link. */
  content(
    held: Held,
    path: string,
    limit: number,
  ): Promise<{
    readonly before: Uint8Array | null;
    readonly after: Uint8Array | null;
    readonly truncated: boolean;
  }>;
  /** `paths` null: all of them. `isDenied`: whether the policy forbids everybody to write a path. */
  apply(
    held: Held,
    paths: readonly string[] | null,
    isDenied: (path: string) => boolean,
    signal: AbortSignal,
  ): Promise<ApplyEnding>;
  /** Takes an apply back: the changes are held again, and can be applied again. */
  undo(held: Held, paths: readonly string[] | null, signal: AbortSignal): Promise<ApplyEnding>;
  /** `paths` null: also changes that are too large to be listed, which are then `.` in the answer. */
  discard(held: Held, paths: readonly string[] | null): Promise<ApplyEnding>;
  /** Whether an operation uses these layers: meanwhile they must not be removed. */
  isInUse(layers: string): boolean;
  /** Finishes or takes back, when the broker starts, every apply or undo below `root` interrupted by an earlier broker's death. */
  recover(root: string): Promise<readonly Settled[]>;
}
