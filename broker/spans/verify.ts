/** Checks the chain of a whole trace, over all its files, and says where the first thing wrong is. */
import { basename } from "node:path";
import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import type { Span, TraceDropped } from "../../schemas/generated/types.ts";
import { checkLine, EMPTY_HEAD, type Head, type Link, readLink } from "./chain.ts";
import { firstLineOf } from "./file-ends.ts";
import { type Line, readBatches } from "./lines.ts";
import { rotatedParts } from "./trace-parts.ts";

export type Verification =
  | {
      readonly ok: true;
      readonly lines: number;
      readonly files: number;
      readonly head: string | null;
      /** What the trace says was dropped before its first line; null when it begins at the beginning. */
      readonly dropped: TraceDropped | null;
      /** Bytes at the end that are no whole line: a broker was killed in it, and nobody acted on it. */
      readonly torn: number;
    }
  | {
      readonly ok: false;
      /** Name of the file. */
      readonly file: string;
      /** Its number in the file, from 1. */
      readonly line: number;
      /** Where it begins, in bytes. */
      readonly offset: number;
      /** The number that belongs there. */
      readonly seq: number;
      readonly wrong: string;
    };

type Wrong = Omit<Extract<Verification, { ok: false }>, "ok">;

/** `named` is the number in the file's name; the live one has none. */
type Part = { readonly path: string; readonly named: number | undefined };

const NEWLINE = 0x0a;

const DROPPED = Buffer.from('"dropped":{');

/** How often the check begins again because the broker dropped, or renamed, what was just to be read. */
const MAX_BEGINS = 5;

/**
 * Checks that every line has the hash it states and follows the one before, from each file to the next, and that the
 * trace still holds each known head (the broker's own copy in the database, or one that a person kept elsewhere): a cut at the end
 * breaks no chain, it only loses heads. A trace that does not begin with its first line must say itself what was dropped.
 */
export async function verifyTrace(
  path: string,
  known: readonly (Head | string)[],
  onProgress: (lines: number) => void = () => {},
): Promise<Verification> {
  for (let begun = 1; ; begun += 1) {
    try {
      return await verifyOnce(path, known, onProgress);
    } catch (error) {
      // A file that nobody dropped is missed by the next look: what is there does not begin where a line says.
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || begun === MAX_BEGINS) throw error;
    }
  }
}

async function verifyOnce(
  path: string,
  known: readonly (Head | string)[],
  onProgress: (lines: number) => void,
): Promise<Verification> {
  const waiting = [...partsOf(path)];
  const walk = new Walk(known, startOf(waiting), basename(path));
  const seen = new Set<string>();
  for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
    const wrong = await walk.file(part, onProgress);
    seen.add(part.path);
    if (part.named !== undefined && wrong !== undefined) return { ok: false, ...wrong };
    if (part.named !== undefined) continue;
    // The broker may have begun a new file meanwhile: the one that was live is looked at first then.
    const isNew = wrong === undefined ? walk.isEmpty : wrong.line === 1;
    const rotated = isNew ? partsFrom(path, walk.next).filter((one) => !seen.has(one.path)) : [];
    if (rotated.length > 0) waiting.push(...rotated, part);
    else if (wrong !== undefined) return { ok: false, ...wrong };
  }
  return walk.result(seen.size);
}

/** One pass over the files. */
class Walk {
  readonly #missing: Set<string>;
  readonly #start: Head;
  #head: Head;
  #lines = 0;
  #torn = 0;
  #dropped: TraceDropped | null = null;
  #first: Pick<Wrong, "file" | "line" | "offset"> | undefined;
  #last: Pick<Wrong, "file" | "line" | "offset">;

  /** `live` is the file in which the trace would begin when there is none. */
  constructor(known: readonly (Head | string)[], start: Head, live: string) {
    this.#last = { file: live, line: 1, offset: 0 };
    this.#missing = new Set(known.flatMap((head) => (typeof head === "string" ? head : (head.hash ?? []))));
    this.#start = start;
    this.#head = start;
  }

  async file(part: Part, onProgress: (lines: number) => void): Promise<Wrong | undefined> {
    const file = basename(part.path);
    let line = 0;
    for await (const lines of readBatches(part.path)) {
      for (const one of lines) {
        line += 1;
        const place = { file, line, offset: one.offset };
        const wrong = line === 1 ? (this.#wrongStart(part, one) ?? this.#check(one)) : this.#check(one);
        if (wrong !== undefined) return { ...place, seq: this.#head.seq + 1, wrong };
        this.#first ??= place;
        this.#last = { file, line: line + 1, offset: one.offset + one.length + 1 };
      }
      onProgress(this.#lines);
    }
    if (line === 0) this.#last = { file, line: 1, offset: 0 };
    this.#torn = tornBytes(part.path, this.#last.offset);
    if (this.#torn === 0 || part.named === undefined) return undefined;
    return {
      ...this.#last,
      seq: this.#head.seq + 1,
      wrong: "the line has no end: it was cut, or its end was changed",
    };
  }

  /** The number that the next line has. */
  get next(): number {
    return this.#head.seq + 1;
  }

  /** Whether the file that was walked last has no line. */
  get isEmpty(): boolean {
    return this.#last.line === 1;
  }

  result(files: number): Verification {
    const begun = this.#wrongBeginning();
    if (begun !== undefined) return { ok: false, ...begun };
    const [lost] = this.#missing;
    if (lost === undefined)
      return {
        ok: true,
        lines: this.#lines,
        files,
        head: this.#head.hash,
        dropped: this.#dropped,
        torn: this.#torn,
      };
    const wrong =
      this.#dropped === null
        ? lostWords(lost)
        : `${lostWords(lost)}, or it was dropped: ${droppedWords(this.#dropped)}`;
    return { ok: false, ...this.#last, seq: this.#head.seq + 1, wrong };
  }

  #check({ bytes }: Line): string | undefined {
    const checked = checkLine(bytes, this.#head);
    if ("wrong" in checked) return checked.wrong;
    this.#head = checked.head;
    this.#lines += 1;
    if (checked.head.hash !== null) this.#missing.delete(checked.head.hash);
    if (bytes.includes(DROPPED)) this.#note((JSON.parse(bytes.toString("utf8")) as Span).dropped);
    return undefined;
  }

  /** Of all that it says was dropped, what ends where this trace begins is what counts. */
  #note(dropped: TraceDropped | undefined): void {
    if (dropped === undefined) return;
    if (dropped.files.some(({ last_hash: hash }) => hash === this.#start.hash)) this.#dropped = dropped;
  }

  /** What the first line of a file shows that it would not show in the middle of one. */
  #wrongStart({ named }: Part, { bytes }: Line): string | undefined {
    const link = readLink(bytes);
    if ("wrong" in link) return undefined;
    if (named !== undefined && link.seq !== named)
      return `the file's name says that it begins with span ${named}, and it begins with ${link.seq}: files were swapped, or their beginning was cut`;
    const wanted = this.#head.seq + 1;
    if (link.seq > wanted)
      return `spans ${wanted} to ${link.seq - 1} are missing: a file before it was removed`;
    if (link.seq === wanted && link.prev !== this.#head.hash)
      return `it does not go on from span ${this.#head.seq}: the file, or the one before, is of another trace`;
    return undefined;
  }

  #wrongBeginning(): Wrong | undefined {
    if (this.#start.hash === null || this.#dropped !== null || this.#first === undefined) return undefined;
    const missing = `spans 1 to ${this.#start.seq} are missing, and no line of the trace says that they were dropped: files before it were removed`;
    return { ...this.#first, seq: this.#start.seq + 1, wrong: missing };
  }
}

/** The head before the first line: none, or what the first line says of itself when it is not the chain's first. */
function startOf(parts: readonly Part[]): Head {
  const [first] = parts;
  const line = first === undefined ? undefined : firstLineOf(first.path);
  if (line === undefined || first === undefined) return EMPTY_HEAD;
  const link: Link | { wrong: string } = readLink(Buffer.from(line, "utf8"));
  if ("wrong" in link || link.seq === 1) return EMPTY_HEAD;
  // In a file that is named for another line, the line is at fault and not the beginning.
  if (first.named !== undefined && first.named !== link.seq) return EMPTY_HEAD;
  return { seq: link.seq - 1, hash: link.prev };
}

/** How much stands behind the last whole line; 0 when more lines have come meanwhile. */
function tornBytes(path: string, offset: number): number {
  const file = openSync(path, "r");
  try {
    const rest = Buffer.alloc(Math.max(0, fstatSync(file).size - offset));
    readSync(file, rest, 0, rest.length, offset);
    return rest.includes(NEWLINE) ? 0 : rest.length;
  } finally {
    closeSync(file);
  }
}

function partsFrom(path: string, first: number): readonly Part[] {
  return partsOf(path).filter(({ named }) => named !== undefined && named >= first);
}

function partsOf(path: string): readonly Part[] {
  const live = existsSync(path) ? [{ path, named: undefined }] : [];
  return [...rotatedParts(path).map(({ path: part, first }) => ({ path: part, named: first })), ...live];
}

function lostWords(head: string): string {
  return `the trace ends before the known head ${head}: its end was cut`;
}

function droppedWords({ first_seq: first, last_seq: last }: TraceDropped): string {
  return `the trace says that spans ${first} to ${last} were`;
}
