import { randomBytes } from "node:crypto";
import { lstat, mkdir, rm, stat, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import {
  ANY_FOLDER,
  type ApplyEnding,
  type Held,
  type HeldChange,
  type HeldStore,
  isTooLarge,
  type Settled,
  type Waiter,
} from "../model/held.ts";
import {
  ALL,
  bytesIn,
  type Journal,
  type Order,
  readJournal,
  type Step,
  type Verb,
  writeBytes,
  writeDiscarded,
} from "./held-journal.ts";
import { keepContents, unchangedContents } from "./held-contents.ts";
import { carryOut, recoverAll } from "./held-change.ts";
import { removeDeep } from "./layers.ts";
import { entriesOf, ROW, type Sight, sightOf } from "./rows.ts";
import { ScanQueue } from "./scan-queue.ts";
import { fieldsOf, NativeSession } from "./native-session.ts";
import {
  changesOf,
  choose,
  conflictsOf,
  refusalsOf,
  type State,
  stateOf,
  withFolders,
} from "./held-state.ts";
import { stepsOf } from "./held-steps.ts";
import { KeyedMutex } from "../model/keyed-mutex.ts";
import { undoSteps } from "./held-undo.ts";
import { HeldSides } from "./sides.ts";
import { bytesOf, rawPath } from "./names.ts";

/** File with the first scan of an upper layer and the project below. */
const SEEN = "seen";
/** The native part's draft of it (world/native/changes/text.c). */
const DRAFT = "draft";
const LOCKS = ".locks";

/** Held changes in layers on this host; only `substrate-init held` touches projects. */
export class LayerStore implements HeldStore {
  readonly #init: string;
  readonly #mutex = new KeyedMutex();
  readonly #scans = new ScanQueue();
  /** Use count by layers folder. */
  readonly #used = new Map<string, number>();

  /** @param init the `substrate-init` program. */
  constructor(init: string) {
    this.#init = init;
  }

  isInUse(layers: string): boolean {
    return this.#used.has(layers);
  }

  async look(held: Held, signal: AbortSignal): Promise<void> {
    const order = { project: held.project, waiter: "broker" } as const;
    await this.#scans.run(order, signal, async (ending) => {
      using _used = this.#use(held);
      try {
        await this.#keepSeen(held, ending);
      } catch (error) {
        // A reader that was killed leaves its draft, of up to 64 MiB.
        await rm(join(held.layers, DRAFT), { force: true });
        throw error;
      }
      const seen = await bytesIn(join(held.layers, SEEN));
      if (seen !== null) await keepContents(held, await entriesOf(seen, ending));
    });
  }

  async #keepSeen(held: Held, signal: AbortSignal): Promise<void> {
    await using session = new NativeSession(this.#init, "held");
    await session.demand(["look", bytesOf(held.layers), bytesOf(held.project), held.identity], signal);
  }

  async list(held: Held, signal: AbortSignal, waiter: Waiter): Promise<readonly HeldChange[]> {
    using _waits = this.#use(held);
    const { project, layers, identity } = held;
    const order = { project, waiter, name: `${identity} ${layers}` };
    return await this.#scans.run(order, signal, async (ending) => {
      using _used = this.#use(held);
      await using session = new NativeSession(this.#init, "held");
      return changesOf(await read(session, held, ending));
    });
  }

  sides(held: Held): Promise<HeldSides> {
    return HeldSides.open(held);
  }

  async content(
    held: Held,
    path: string,
    limit: number,
  ): Promise<{ before: Uint8Array | null; after: Uint8Array | null; truncated: boolean }> {
    using _used = this.#use(held);
    await using session = new NativeSession(this.#init, "held");
    const before = await contentOf(session, bytesOf(held.project), held.identity, path, limit);
    const after = await contentOf(session, bytesOf(join(held.layers, "upper")), ANY_FOLDER, path, limit);
    return { before: before.bytes, after: after.bytes, truncated: before.truncated || after.truncated };
  }

  async apply(
    held: Held,
    paths: readonly string[] | null,
    isDenied: (path: string) => boolean,
    signal: AbortSignal,
  ): Promise<ApplyEnding> {
    return await this.#inTurn(held, signal, async (session, seen, lock) => {
      const state = await this.#read(session, held, signal);
      const { journal, open } = state;
      const { paths: named, refusals } = choose(open.keys(), paths, (path) => notHeld(journal, path));
      const chosen = withFolders(state, named);
      const refused = [...refusals, ...refusalsOf(state, chosen, isDenied)];
      if (refused.length > 0) return { kind: "refused", refusals: refused };
      const unchanged = await unchangedContents(held, state.entries, state.seen, chosen);
      const conflicts = conflictsOf(state, chosen, unchanged);
      if (conflicts.length > 0) return { kind: "conflict", conflicts };
      const left = [...open.keys()].filter((path) => !chosen.has(path));
      const order = orderOf(held, seen, lock, "apply", [...chosen], stepsOf(state, chosen));
      return await carryOut(this.#init, session, order, left);
    });
  }

  async undo(held: Held, paths: readonly string[] | null, signal: AbortSignal): Promise<ApplyEnding> {
    return await this.#inTurn(held, signal, async (session, seen, lock) => {
      const journal = await readJournal(held.layers);
      const { paths: chosen, refusals } = choose(
        journal.applied.keys(),
        paths,
        () => "The changes are not applied",
      );
      if (refusals.length > 0) return { kind: "refused", refusals };
      const steps = await undoSteps(journal, chosen, (path) => isThere(held.layers, path));
      const left = [...journal.applied.keys()].filter((path) => !chosen.has(path));
      return await carryOut(this.#init, session, orderOf(held, seen, lock, "undo", [...chosen], steps), left);
    });
  }

  async discard(held: Held, paths: readonly string[] | null): Promise<ApplyEnding> {
    const never = new AbortController().signal;
    return await this.#inTurn(held, never, async (session) => {
      // Works even if the project was replaced: nothing is written there.
      const state = await this.#read(session, { ...held, identity: ANY_FOLDER }, never).catch(
        (error: unknown) => {
          if (paths === null && isTooLarge(error)) return undefined;
          throw error;
        },
      );
      if (state === undefined) return await discardUnread(held.layers);
      const { journal, open } = state;
      const { paths: chosen, refusals } = choose(open.keys(), paths, (path) => notHeld(journal, path));
      if (refusals.length > 0) return { kind: "refused", refusals };
      await writeDiscarded(held.layers, new Set([...journal.discarded, ...chosen]));
      for (const path of chosen) if (open.get(path)?.type === ROW.file) await freeUpper(held.layers, path);
      return { kind: "done", done: [...chosen], left: [...open.keys()].filter((path) => !chosen.has(path)) };
    });
  }

  async recover(root: string): Promise<readonly Settled[]> {
    return await recoverAll(this.#init, root, join(root, LOCKS));
  }

  /** Scans for a change of the project, whose lock is held. */
  #read(session: NativeSession, held: Held, signal: AbortSignal): Promise<State> {
    const order = { project: held.project, waiter: "operator" } as const;
    return this.#scans.run(order, signal, (ending) => read(session, held, ending));
  }

  /** Marks the layers as in use at once, before any wait: they must not be removed meanwhile. */
  #use({ layers }: Held): Disposable {
    this.#used.set(layers, (this.#used.get(layers) ?? 0) + 1);
    return {
      [Symbol.dispose]: () => {
        const left = (this.#used.get(layers) ?? 1) - 1;
        if (left === 0) this.#used.delete(layers);
        else this.#used.set(layers, left);
      },
    };
  }

  /** Runs one operation per project at a time, in this process and among all brokers with layers in the same root. */
  async #inTurn(
    held: Held,
    signal: AbortSignal,
    work: (session: NativeSession, seen: Sight, lock: string) => Promise<ApplyEnding>,
  ): Promise<ApplyEnding> {
    using _used = this.#use(held);
    try {
      return await this.#locked(held, signal, work);
    } catch (error) {
      signal.throwIfAborted();
      // Failures here precede the first step; later endings are returned, not thrown.
      return {
        kind: "failed",
        message: `${error instanceof Error ? error.message : String(error)}. The project is unchanged`,
      };
    }
  }

  async #locked(
    held: Held,
    signal: AbortSignal,
    work: (session: NativeSession, seen: Sight, lock: string) => Promise<ApplyEnding>,
  ): Promise<ApplyEnding> {
    const seen = await sightOfFolder(held.project);
    const locks = join(dirname(held.layers), LOCKS);
    const { dev, ino } = await stat(held.project);
    const lock = `${dev}-${ino}`;
    await mkdir(locks, { recursive: true, mode: 0o700 });
    return await this.#mutex.run(lock, async () => {
      await using session = new NativeSession(this.#init, "held");
      await session.demand(["lock", bytesOf(join(locks, lock))], signal);
      // This or another broker may have been killed while applying.
      await recoverAll(this.#init, dirname(held.layers), null, held.layers);
      return await work(session, seen, lock);
    });
  }
}

/** Scans layer and project; saves the first scan as the baseline of later comparisons. */
async function read(session: NativeSession, held: Held, signal: AbortSignal): Promise<State> {
  const journal = await readJournal(held.layers);
  if (journal.discarded.has(ALL)) return stateOf(held, new Map(), new Map(), journal);
  const upper = bytesOf(join(held.layers, "upper"));
  const rows = await session.demand(["scan", upper, bytesOf(held.project), held.identity], signal);
  const first = await bytesIn(join(held.layers, SEEN));
  if (first === null && held.identity !== ANY_FOLDER) await writeBytes(held.layers, SEEN, rows);
  const entries = await entriesOf(rows, signal);
  const before = first === null ? entries : await entriesOf(first, signal);
  return stateOf(held, entries, before, journal);
}

/** Discards all changes, and frees their space: nobody can list them. Applied ones can still be undone. */
async function discardUnread(layers: string): Promise<ApplyEnding> {
  const { discarded } = await readJournal(layers);
  await writeDiscarded(layers, new Set([...discarded, ALL]));
  await removeDeep(join(layers, "upper")).catch(() => {
    // A file resists, ignoring: the changes are discarded anyway, and the file goes with the layers.
  });
  await mkdir(join(layers, "upper"), { recursive: true, mode: 0o755 });
  return { kind: "done", done: ["."], left: [] };
}

function orderOf(
  held: Held,
  seen: Sight,
  lock: string,
  verb: Verb,
  paths: readonly string[],
  steps: readonly Step[],
): Order {
  if (lock !== held.identity.replace(":", "-")) throw new Error(`'${held.project}' is now another folder`);
  const stage = `.substrate-apply-${randomBytes(8).toString("hex")}`;
  return { layers: held.layers, project: held.project, seen, verb, lock, stage, paths, steps };
}

function notHeld({ applied, discarded }: Journal, path: string): string {
  if (applied.has(path)) return "no changes are left: they are applied already";
  if (discarded.has(path)) return "no changes are left: they were discarded";
  return "no changes are held";
}

async function contentOf(
  session: NativeSession,
  root: string,
  identity: string,
  path: string,
  limit: number,
): Promise<{ bytes: Uint8Array | null; truncated: boolean }> {
  const { word, rest } = await session.ask(["content", root, identity, path, String(limit)]);
  if (word === "none") return { bytes: null, truncated: false };
  const end = rest.indexOf(0);
  if (word !== "ok") throw new Error(`Cannot read '${fieldsOf(rest).join("': ")}`);
  const bytes = rest.subarray(end + 1);
  return { bytes, truncated: Number(rest.toString("latin1", 0, end)) > bytes.length };
}

async function sightOfFolder(path: string): Promise<Sight> {
  const { ino, dev, mtimeNs } = await stat(path, { bigint: true });
  const sight = sightOf(`d 0 0 ${mtimeNs} ${ino} 0 0 0 ${dev}`);
  if (sight === null) throw new Error(`Cannot read the state of '${path}'`);
  return sight;
}

async function isThere(layers: string, path: string): Promise<boolean> {
  return await lstat(rawPath(join(bytesOf(layers), path))).then(
    () => true,
    () => false,
  );
}

/** Frees disk space at once; the mark alone would leave the file until the layers are swept. */
async function freeUpper(layers: string, path: string): Promise<void> {
  await unlink(rawPath(join(bytesOf(layers), "upper", path))).catch(() => {
    // The file resists, ignoring: the change is discarded anyway, and the file goes with the layers.
  });
}
