/**
 * Changes that an isolated command made and that nobody else sees yet: looked at, put into the project, taken back or
 * thrown away. Paths have one letter for each byte (names.ts) and are relative to the project.
 */

/** The identity that every folder has: for dropping changes, which puts nothing into a project. */
export const ANY_FOLDER = "";

/** Held changes of one span. */
export type Held = {
  /** The folder of `upper`, `work` and what applying keeps: the journal and the undo records. */
  readonly layers: string;
  /** Absolute. */
  readonly project: string;
  /** `device:inode` of the project that the command ran in: what stands there else is not looked at; or {@link ANY_FOLDER}. */
  readonly identity: string;
  /** Wall clock, nanoseconds since the epoch, taken just before the overlay was mounted. */
  readonly mountedAt: bigint;
};

/**
 * `write`: a file that was not there; `mod`: one that was, or something of another kind in its place; `delete`: gone with
 * all below it; `dir`: a folder that was not there; `link`: a symlink that is new or leads elsewhere; `mode`: nothing but
 * permissions, times, owner or attributes.
 */
export type HeldKind = "write" | "mod" | "delete" | "dir" | "link" | "mode";

export type HeldChange = {
  readonly path: string;
  readonly kind: HeldKind;
  readonly autorun: boolean;
  /** Bytes of what is there afterwards; 0 for what is no file. */
  readonly size: number;
  /** `st_mode` of what is there afterwards, type included; 0 for a deletion. */
  readonly mode: number;
  /** How many names the file has in the layer; 1 for what is no file. Those of one apply become names of one file in the project too. */
  readonly links: number;
};

/** Why one path stands in the way, in a sentence for people. */
export type PathReason = { readonly path: string; readonly reason: string };

export type ApplyEnding =
  /** `left`: what is still held (or, of an undo, still applied). */
  | { readonly kind: "done"; readonly done: readonly string[]; readonly left: readonly string[] }
  /** The project is not as the command saw it, or not as it was left. Nothing was changed. */
  | { readonly kind: "conflict"; readonly conflicts: readonly PathReason[] }
  /** What nobody may apply: setuid, a device, a file capability, a denied name; a path that holds no change. Nothing was changed. */
  | { readonly kind: "refused"; readonly refusals: readonly PathReason[] }
  /** The host could not (a full disk): everything is as it was. */
  | { readonly kind: "failed"; readonly message: string };

/** What became of an apply or undo that its broker was killed in: a sentence, and the span whose changes they are. */
export type Settled = { readonly span: string; readonly message: string };

export interface HeldStore {
  /**
   * Keeps what is seen of the project now (`seen` in the layers), which every later apply is compared with: to be called as
   * soon as the command has ended, off its path. Does nothing when it was looked at before. Throws when that cannot be.
   */
  look(held: Held, signal: AbortSignal): Promise<void>;
  /** Sorted by path, byte by byte; the first call looks as well. Throws when the layers cannot be read. */
  list(held: Held, signal: AbortSignal): Promise<readonly HeldChange[]>;
  /** Both sides of one regular file, at most `limit` bytes each; null where there is none on that side. Follows no link. */
  content(
    held: Held,
    path: string,
    limit: number,
  ): Promise<{
    readonly before: Uint8Array | null;
    readonly after: Uint8Array | null;
    readonly truncated: boolean;
  }>;
  /** `paths` null: all of them. `isDenied` says of a path that the policy lets nobody write it. */
  apply(
    held: Held,
    paths: readonly string[] | null,
    isDenied: (path: string) => boolean,
    signal: AbortSignal,
  ): Promise<ApplyEnding>;
  /** Afterwards the changes are held again, and can be applied again. */
  undo(held: Held, paths: readonly string[] | null, signal: AbortSignal): Promise<ApplyEnding>;
  discard(held: Held, paths: readonly string[] | null): Promise<ApplyEnding>;
  /** Whether any of this is being done in these layers: until then they must stay. */
  isInUse(layers: string): boolean;
  /**
   * At the broker's start: every apply or undo below `root` that an earlier broker was killed in is finished or taken
   * back.
   */
  recover(root: string): Promise<readonly Settled[]>;
}
