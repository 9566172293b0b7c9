/** Writes the patches of one diff, until its bound on size or time is reached. */
import { setImmediate as turn } from "node:timers/promises";
import type { HeldAttribute, HeldChange, HeldSide, OpenSides } from "../../world/backend.ts";
import { changePath } from "./change-path.ts";
import { type FilePatch, filePatch, type PatchSide } from "./patch.ts";

export type Counts = Omit<FilePatch, "text">;

/** Bounds of a reply. */
const MAX_PATCH = 4 * 1024 * 1024;
const MAX_FILE = 512 * 1024;
const MAX_MS = 4000;
/** Bound on files shown from a removed folder. */
const MAX_BELOW = 2000;
/** Bound on folders, and on special files, named in the summary. */
const MAX_NAMED = 20;

/** Counts of changes missing in the patch, by reason. */
type Gaps = { large: number; hidden: number; late: number; below: number; odd: number };

const NONE: HeldSide = { kind: "none" };

export class PatchWriter {
  readonly #sides: OpenSides;
  readonly #isHidden: (path: string) => boolean;
  readonly #signal: AbortSignal;
  readonly #until = performance.now() + MAX_MS;
  readonly #texts: string[] = [];
  readonly #gaps: Gaps = { large: 0, hidden: 0, late: 0, below: 0, odd: 0 };
  readonly #folders: string[] = [];
  readonly #attributes = new Map<HeldAttribute, string[]>();
  /** Special and unreadable files. */
  readonly #odd: string[] = [];
  #length = 0;

  /** `isHidden` tests whether a byte path must not be shown. */
  constructor(sides: OpenSides, isHidden: (path: string) => boolean, signal: AbortSignal) {
    this.#sides = sides;
    this.#isHidden = isHidden;
    this.#signal = signal;
  }

  /** Adds a change; undefined when there is no difference, the path is hidden, or time is up. */
  async add(change: HeldChange): Promise<Counts | undefined> {
    this.#signal.throwIfAborted();
    this.#nameAttributes(change);
    if (change.kind === "dir") return undefined;
    if (this.#isFull()) {
      this.#gaps.late += 1;
      return undefined;
    }
    const [before, after] = [await this.#sides.before(change.path), await this.#sides.after(change)];
    if (change.kind === "mode" && before.kind === "folder") return this.#folder(change.path, before, after);
    if (isUnseen(change, before, after)) {
      this.#gaps.odd += 1;
      if (!this.#isHidden(change.path)) this.#odd.push(changePath(change.path));
    }
    if (before.kind !== "folder") return await this.#one(change.path, before, after);
    // A patch has no line for a removed folder, only for its files.
    const gone = await this.#removed(change.path);
    const own = await this.#one(change.path, NONE, after);
    return gone === undefined || own === undefined ? (own ?? gone) : sumOf(gone, own);
  }

  text(): string {
    return this.#texts.join("");
  }

  isShort(): boolean {
    return Object.values(this.#gaps).some((count) => count > 0);
  }

  /** Describes the omitted changes, a sentence per reason. */
  gaps(): readonly string[] {
    const { large, hidden, late, below, odd } = this.#gaps;
    return [
      ...(large > 0
        ? [`${files(large)} larger than ${MAX_FILE / 1024} KiB, or cannot be read, and not shown`]
        : []),
      ...(hidden > 0 ? [`${files(hidden)} hidden by fs.deny_read of the policy and not shown`] : []),
      ...(odd > 0
        ? [
            `${files(odd)} a special file (such as a pipe) or unreadable, and not shown${this.#odd.length > 0 ? `: ${someOf(this.#odd)}` : ""}`,
          ]
        : []),
      ...this.#folderModes(),
      ...[...this.#attributes].map(([what, paths]) => `not in the patch, the ${what} of ${someOf(paths)}`),
      ...(below > 0 ? ["not every file of a removed folder is shown"] : []),
      ...(late > 0
        ? [`the patch leaves out ${late} more of the listed paths; name paths to see their changes`]
        : []),
    ];
  }

  /**
   * Reports a folder's changed mode in the summary: a patch cannot express it, and a newly world-writable folder must be seen.
   */
  #folder(path: string, before: HeldSide, after: HeldSide): undefined {
    if (before.kind !== "folder" || after.kind !== "folder" || before.mode === after.mode) return;
    if (this.#isHidden(path)) return;
    const [old, now] = [before.mode.toString(8), after.mode.toString(8)];
    this.#folders.push(`${changePath(path)} (${old} to ${now})`);
  }

  /** Reports in the summary, as with a folder's mode, what an apply would set unseen. */
  #nameAttributes({ path, attributes }: HeldChange): void {
    for (const attribute of attributes) {
      const paths = this.#attributes.get(attribute) ?? [];
      this.#attributes.set(attribute, paths);
      paths.push(this.#isHidden(path) ? "a path hidden by fs.deny_read" : changePath(path));
    }
  }

  #folderModes(): readonly string[] {
    return this.#folders.length === 0 ? [] : [`the mode of folders changed: ${someOf(this.#folders)}`];
  }

  /** Adds a removed folder; undefined unless all its files are counted, because a partial count would be taken for the whole. */
  async #removed(folder: string): Promise<Counts | undefined> {
    const { paths, more } = await this.#sides.filesBelow(folder, MAX_BELOW);
    let sum: Counts | undefined;
    let isWhole = !more;
    for (const path of paths) {
      if (this.#isFull()) {
        isWhole = false;
        break;
      }
      const one = await this.#one(path, await this.#sides.before(path), NONE);
      sum = sum === undefined || one === undefined ? (one ?? sum) : sumOf(sum, one);
    }
    if (isWhole) return sum;
    this.#gaps.below += 1;
    return undefined;
  }

  async #one(path: string, before: HeldSide, after: HeldSide): Promise<Counts | undefined> {
    if (isNothing(before) && isNothing(after)) return undefined;
    if (this.#isHidden(path)) {
      this.#gaps.hidden += 1;
      return undefined;
    }
    const old = await this.#sideOf("before", path, before);
    const { text, ...counts } = filePatch(path, old, await this.#sideOf("after", path, after));
    if (counts.left !== null) this.#gaps[counts.left] += 1;
    this.#texts.push(text);
    this.#length += text.length;
    // Yield after each file, so that commands are answered in between.
    await turn();
    return counts;
  }

  async #sideOf(which: "before" | "after", path: string, side: HeldSide): Promise<PatchSide | undefined> {
    if (side.kind === "link") return { kind: "link", target: side.target };
    if (side.kind !== "file") return undefined;
    const { mode, size } = side;
    const bytes = size > MAX_FILE ? null : await this.#sides.content(which, path, MAX_FILE);
    return { kind: "file", mode, bytes };
  }

  #isFull(): boolean {
    return this.#length > MAX_PATCH || performance.now() > this.#until;
  }
}

function files(count: number): string {
  return count === 1 ? "1 file is" : `${count} files are`;
}

function sumOf(one: Counts, other: Counts): Counts {
  const sum = (a: number | null, b: number | null): number | null =>
    a === null || b === null ? null : a + b;
  return {
    binary: one.binary === true || other.binary === true,
    added: sum(one.added, other.added),
    removed: sum(one.removed, other.removed),
    left: one.left ?? other.left,
  };
}

/** Whether a patch cannot express the change. A deleted path that is also missing now is no change. */
function isUnseen({ kind }: HeldChange, before: HeldSide, after: HeldSide): boolean {
  if (kind === "delete") return before.kind === "other";
  return after.kind === "other" || (after.kind === "none" && isNothing(before));
}

function isNothing(side: HeldSide): boolean {
  return side.kind !== "file" && side.kind !== "link";
}

function someOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMED;
  return `${names.slice(0, MAX_NAMED).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
