/** Searches the host for names matching denied patterns that hold in every tree (`substrate-init find`), and caches the results. */
import { spawn } from "node:child_process";
import { FRAME_HEADER_SIZE, TAG } from "../../schemas/generated/frames.ts";
import type { WorldSpec } from "../model/world.ts";
import { WorldUnavailable, abortError } from "../model/unavailable.ts";
import { denialWords, floating, unfound } from "../plan/denials.ts";
import { encodeFields, type Field } from "./frame-codec.ts";
import { foldersIn } from "./host-facts.ts";

export type Found = {
  /** Absolute host paths. */
  readonly paths: readonly string[];
  /** The list may be incomplete. */
  readonly cut: boolean;
};

/** Bound of the list: each name is a mark in the layer that hides it. */
const MAX_FOUND = 4096;

/** Time limit of a search. A first walk of a home with some hundred thousand folders takes a few seconds. */
const PATIENCE_MS = 60_000;

/**
 * After this wait a world is made with the names found so far, and reports that: making a world may take 15 seconds in all. The
 * search continues for later worlds.
 */
const WAIT_MS = 8000;

/** Maximum age of a result; names made meanwhile by a person are hidden only in later worlds. */
const FRESH_MS = 60_000;

/** From this age on a new search starts in the background while worlds use the old result, so that few worlds ever wait. */
const RIPE_MS = 15_000;

const MAX_KNOWN = 16;

const NOTHING: Found = { paths: [], cut: false };

/** A search, running or finished. */
type Search = { readonly whole: Promise<Found>; readonly soFar: () => Found };

type Known = { readonly at: number; readonly search: Search; next: Search | undefined };

/** The patterns as init's words, and the trees hidden as a whole: homes of commands may hold any number of such names. */
type Wanted = { readonly words: readonly string[]; readonly skipped: readonly string[] };

export class FoundNames {
  readonly #init: string;
  readonly #known = new Map<string, Known>();
  readonly #closing = new AbortController();

  constructor(init: string) {
    this.#init = init;
  }

  /** Returns the names to hide for a spec; free if no pattern holds in every tree. Throws `WorldUnavailable` when the search fails. */
  async of(spec: WorldSpec, signal: AbortSignal): Promise<Found> {
    const names = floating(spec);
    if (names.length === 0) return NOTHING;
    const wanted = { words: names.map((name) => denialWords(name).join("\0")), skipped: spec.hidden };
    const key = [...wanted.words, "", ...wanted.skipped].join("\n");
    const known = this.#known.get(key);
    const age = known === undefined ? Number.POSITIVE_INFINITY : Date.now() - known.at;
    const search = known !== undefined && age < FRESH_MS ? known.search : this.#look(key, wanted);
    if (known !== undefined && age >= RIPE_MS && age < FRESH_MS) this.#lookAhead(key, wanted, known);
    return await inTime(search, signal);
  }

  /** Ends running searches. */
  close(): void {
    this.#closing.abort();
    this.#known.clear();
  }

  #look(key: string, wanted: Wanted): Search {
    const running = this.#known.get(key)?.next;
    if (running !== undefined) return running;
    if (this.#known.size >= MAX_KNOWN) this.#known.clear();
    const search = find(this.#init, wanted, this.#closing.signal);
    this.#known.set(key, { at: Date.now(), search, next: undefined });
    // The caller gets the error; later calls search again.
    search.whole.catch(() => this.#known.delete(key));
    return search;
  }

  #lookAhead(key: string, wanted: Wanted, known: Known): void {
    if (known.next !== undefined) return;
    const at = Date.now();
    const next = find(this.#init, wanted, this.#closing.signal);
    known.next = next;
    next.whole.then(
      () => this.#known.set(key, { at, search: next, next: undefined }),
      () => {
        // The search failed, ignoring: the next world searches again and gets the error.
        known.next = undefined;
      },
    );
  }
}

function find(init: string, { words, skipped }: Wanted, closing: AbortSignal): Search {
  const fields: readonly Field[] = [
    ...unfound({ folders: foldersIn }).map(({ kind, path }): Field => [TAG.ZONE, `${kind}\0${path}`]),
    ...skipped.map((path): Field => [TAG.ZONE, `skip\0${path}`]),
    ...words.map((word): Field => [TAG.DENY, word]),
  ];
  const child = spawn(init, ["find"], {
    stdio: ["pipe", "pipe", "ignore"],
    env: {},
    cwd: "/",
    detached: true,
  });
  const pieces: Buffer[] = [];
  let [count, late] = [0, false];
  const stop = (): void => {
    late = true;
    child.kill("SIGKILL");
  };
  const timer = setTimeout(stop, PATIENCE_MS);
  child.stdout.on("data", (piece: Buffer) => {
    pieces.push(piece);
    for (const byte of piece) count += byte === 0 ? 1 : 0;
    if (count > MAX_FOUND + 2) stop();
  });
  child.stdin.on("error", () => {
    // The program has ended, ignoring: "close" reports that.
  });
  closing.addEventListener("abort", stop, { once: true });
  const soFar = (isWhole: boolean): Found => parse(Buffer.concat(pieces).toString("utf8"), !isWhole);
  const whole = new Promise<Found>((resolve, reject) => {
    const fail = (why: string): void =>
      reject(
        new WorldUnavailable(
          `Cannot look for denied names in the host's trees: ${why}`,
          "Build the programs again with 'npm run build', or write the pattern with the folder that it is meant for",
        ),
      );
    child.once("error", (error) => fail(error.message));
    child.once("close", (code) => {
      clearTimeout(timer);
      closing.removeEventListener("abort", stop);
      if (closing.aborted) return fail("the broker ends");
      if (!late && code !== 0) return fail(`'${init} find' ended with ${code}`);
      resolve(soFar(!late));
    });
    child.stdin.end(encodeFields(0, 0, fields).subarray(FRAME_HEADER_SIZE));
  });
  return { whole, soFar: () => soFar(false) };
}

/** Parses paths, an empty word, then the result word. The output of a killed search may end in the middle of a path. */
function parse(text: string, late: boolean): Found {
  const words = text.split("\0").slice(0, -1);
  const end = words.indexOf("");
  const paths = end < 0 ? words : words.slice(0, end);
  return {
    paths: paths.slice(0, MAX_FOUND),
    cut: late || words[end + 1] !== "whole" || paths.length > MAX_FOUND,
  };
}

/** Rejects with the signal's reason when aborted. */
function inTime({ whole, soFar }: Search, signal: AbortSignal): Promise<Found> {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(soFar()), WAIT_MS);
    const onAbort = (): void => reject(abortError(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    whole.then(resolve, reject).finally(() => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    });
  });
}
