/** Finds changes that take a file's content from the project while a change that stays held has it: half of a move. */
import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { posix } from "node:path";
import type { HeldChange, HeldSide, HeldStore, OpenSides, PathReason } from "../../world/backend.ts";
import { changePath } from "./change-path.ts";

/** Bound on the files of the project that are compared. */
const MAX_FILES = 10_000;
/** Larger files of one size count as the same. */
const MAX_FILE = 32 * 1024 * 1024;
/** Bound on the bytes read for one apply, both sides together; beyond it files of one size count as the same. */
const MAX_BYTES = 256 * 1024 * 1024;

/** A file that stays held: its content may come from a file of the project. */
type Arrival = Pick<HeldChange, "path" | "kind">;

/** Compares project files with held files by hash. One instance serves all rounds of an apply, and hashes each file once. */
export class HalfMoves {
  readonly #open: () => ReturnType<HeldStore["sides"]>;
  readonly #signal: AbortSignal;
  readonly #contents = new Map<string, string>();
  /** The held files of each size by their content, and how many there were: a later round may hold more. */
  readonly #held = new Map<
    string,
    { readonly of: number; readonly contents: ReadonlyMap<string, Arrival> }
  >();
  #bytes = MAX_BYTES;

  constructor(open: () => ReturnType<HeldStore["sides"]>, signal: AbortSignal) {
    this.#open = open;
    this.#signal = signal;
  }

  /**
   * Returns the changes among `taken` that remove or replace content that one of `held` has, each with the reason to hold it too.
   * Empty files are compared by their last name. Not found are a file that was changed after its move, and one beyond the first
   * 10,000. Throws when time is up.
   */
  readonly among = async (
    taken: readonly HeldChange[],
    held: readonly HeldChange[],
  ): Promise<readonly PathReason[]> => {
    const arrivals = bySize(held);
    const removing = taken.filter(({ kind }) => kind !== "mode" && kind !== "write");
    if (removing.length === 0 || arrivals.size === 0) return [];
    const sides = await this.#open();
    try {
      return await this.#removed(sides, removing, arrivals);
    } finally {
      await sides.close();
    }
  };

  async #removed(
    sides: OpenSides,
    removing: readonly HeldChange[],
    arrivals: ReadonlyMap<string, readonly Arrival[]>,
  ): Promise<readonly PathReason[]> {
    const halves: PathReason[] = [];
    let rest = MAX_FILES;
    for (const { path } of removing) {
      this.#signal.throwIfAborted();
      const { kind } = await sides.before(path);
      if (kind === "none") continue;
      const files = kind === "folder" ? (await sides.filesBelow(path, rest)).paths : [path];
      const arrival = await this.#firstArrival(sides, files, arrivals);
      if (arrival !== undefined)
        halves.push({ path, reason: `Its content is in '${changePath(arrival.path)}', which stays held` });
      rest -= files.length;
      if (rest <= 0) break;
    }
    return halves;
  }

  async #firstArrival(
    sides: OpenSides,
    paths: readonly string[],
    arrivals: ReadonlyMap<string, readonly Arrival[]>,
  ): Promise<Arrival | undefined> {
    for (const path of paths) {
      this.#signal.throwIfAborted();
      const before = await sides.before(path);
      const alike = arrivals.get(sizeKey(before)) ?? [];
      if (alike.length === 0) continue;
      const held = await this.#byContent(sides, sizeKey(before), alike);
      const content = await this.#contentOf(sides, "before", path, before);
      const arrival = content === undefined ? alike[0] : (held.get(content) ?? held.get(UNREAD));
      if (arrival !== undefined) return arrival;
    }
    return undefined;
  }

  async #byContent(
    sides: OpenSides,
    key: string,
    alike: readonly Arrival[],
  ): Promise<ReadonlyMap<string, Arrival>> {
    const known = this.#held.get(key);
    if (known?.of === alike.length) return known.contents;
    const contents = new Map<string, Arrival>();
    for (const arrival of alike) {
      this.#signal.throwIfAborted();
      const side = await sides.after(arrival);
      contents.set((await this.#contentOf(sides, "after", arrival.path, side)) ?? UNREAD, arrival);
    }
    this.#held.set(key, { of: alike.length, contents });
    return contents;
  }

  /** Returns what only files of this content have; undefined where the bound is met, or the file is gone. */
  async #contentOf(
    sides: OpenSides,
    side: "before" | "after",
    path: string,
    now: HeldSide,
  ): Promise<string | undefined> {
    if (now.kind === "link") return `link ${Buffer.from(now.target).toString("latin1")}`;
    if (now.kind !== "file") return undefined;
    if (now.size === 0) return `empty ${posix.basename(path)}`;
    const key = `${side} ${path}`;
    const known = this.#contents.get(key);
    if (known !== undefined || now.size > Math.min(MAX_FILE, this.#bytes)) return known;
    this.#bytes -= now.size;
    const bytes = await sides.content(side, path, now.size);
    if (bytes === null) return undefined;
    const hash = createHash("sha256").update(bytes).digest("hex");
    this.#contents.set(key, hash);
    return hash;
  }
}

/** Stands for the content of a file that was not read. */
const UNREAD = "unread";

/** The files and links that are new or changed, by what tells them apart before they are read. */
function bySize(held: readonly HeldChange[]): ReadonlyMap<string, readonly Arrival[]> {
  const found = new Map<string, Arrival[]>();
  for (const { path, kind, size, mode } of held) {
    const type = mode & constants.S_IFMT;
    if (kind !== "write" && kind !== "mod" && kind !== "link") continue;
    if (type !== constants.S_IFREG && type !== constants.S_IFLNK) continue;
    const key = type === constants.S_IFLNK ? LINK : `${size}`;
    const alike = found.get(key);
    if (alike === undefined) found.set(key, [{ path, kind }]);
    else alike.push({ path, kind });
  }
  return found;
}

const LINK = "link";

function sizeKey(side: HeldSide): string {
  if (side.kind === "link") return LINK;
  return side.kind === "file" ? `${side.size}` : "";
}
