/** Verifies the chain of a whole trace across all its files, and locates the first error. */
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
      /** The trace's own record of lines dropped before its first line; null for a complete trace. */
      readonly dropped: TraceDropped | null;
      /** Bytes of an incomplete line at the end: the broker was killed while writing and never acted on the line. */
      readonly torn: number;
    }
  | {
      readonly ok: false;
      /** Name of the file. */
      readonly file: string;
      /** Line number in the file, from 1. */
      readonly line: number;
      /** Offset of the line in bytes. */
      readonly offset: number;
      /** The expected sequence number. */
      readonly seq: number;
      readonly wrong: string;
    };

type Wrong = Omit<Extract<Verification, { ok: false }>, "ok">;

/** `named` is the number in the file's name; undefined for the live file. */
type Part = { readonly path: string; readonly named: number | undefined };

const NEWLINE = 0x0a;

const DROPPED = Buffer.from('"dropped":{');

/** Restarts of the check after the broker dropped or renamed a file about to be read. */
const MAX_BEGINS = 5;

/**
 * Checks that every line has its stated hash and follows the previous line, from file to file, and that the trace still contains
 * each known head (the broker's copy in the database, or a copy kept by a person): a cut at the end breaks no chain, but loses
 * heads. A trace without its first lines must record their dropping.
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
      // A file missing without a drop shows up in the next pass: the remaining trace has no record of dropping its beginning.
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
    // The broker may have rotated meanwhile: check the formerly live file first.
    const isNew = wrong === undefined ? walk.isEmpty : wrong.line === 1;
    const rotated = isNew ? partsFrom(path, walk.next).filter((one) => !seen.has(one.path)) : [];
    if (rotated.length > 0) waiting.push(...rotated, part);
    else if (wrong !== undefined) return { ok: false, ...wrong };
  }
  return walk.result(seen.size);
}

/** A single pass over the files. */
class Walk {
  readonly #missing: Set<string>;
  readonly #start: Head;
  #head: Head;
  #lines = 0;
  #torn = 0;
  #dropped: TraceDropped | null = null;
  #first: Pick<Wrong, "file" | "line" | "offset"> | undefined;
  #last: Pick<Wrong, "file" | "line" | "offset">;

  /** `live` is the file to report for an empty trace. */
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

  /** The number of the next line. */
  get next(): number {
    return this.#head.seq + 1;
  }

  /** Whether the last visited file is empty. */
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

  /** Only the drop record ending where this trace begins counts. */
  #note(dropped: TraceDropped | undefined): void {
    if (dropped === undefined) return;
    if (dropped.files.some(({ last_hash: hash }) => hash === this.#start.hash)) this.#dropped = dropped;
  }

  /** Errors visible only in the first line of a file. */
  #wrongStart({ named }: Part, { bytes }: Line): string | undefined {
    const link = readLink(bytes);
    if ("wrong" in link) return undefined;
    if (named !== undefined && link.seq !== named)
      return `by its name the file begins with span ${named}, but it begins with ${link.seq}: files were swapped, or their beginning was cut`;
    const wanted = this.#head.seq + 1;
    if (link.seq > wanted)
      return `spans ${wanted} to ${link.seq - 1} are missing: a file before it was removed`;
    if (link.seq === wanted && link.prev !== this.#head.hash)
      return `it does not continue from span ${this.#head.seq}: the file, or the one before, is from another trace`;
    return undefined;
  }

  #wrongBeginning(): Wrong | undefined {
    if (this.#start.hash === null || this.#dropped !== null || this.#first === undefined) return undefined;
    const missing = `spans 1 to ${this.#start.seq} are missing, and the trace does not record that they were dropped: earlier files were removed`;
    return { ...this.#first, seq: this.#start.seq + 1, wrong: missing };
  }
}

/** Returns the head before the first line: empty, or taken from the first line's own fields when earlier lines are missing. */
function startOf(parts: readonly Part[]): Head {
  const [first] = parts;
  const line = first === undefined ? undefined : firstLineOf(first.path);
  if (line === undefined || first === undefined) return EMPTY_HEAD;
  const link: Link | { wrong: string } = readLink(Buffer.from(line, "utf8"));
  if ("wrong" in link || link.seq === 1) return EMPTY_HEAD;
  // When the file name disagrees with the line's number, report the line, not missing lines before it.
  if (first.named !== undefined && first.named !== link.seq) return EMPTY_HEAD;
  return { seq: link.seq - 1, hash: link.prev };
}

/** Counts bytes after the last complete line; 0 when more lines were written meanwhile. */
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
