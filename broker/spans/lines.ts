import { createReadStream } from "node:fs";

/** A line's place and bytes, without the newline. */
export type Line = { readonly offset: number; readonly length: number; readonly bytes: Buffer };

const NEWLINE = 0x0a;
const CHUNK = 1024 * 1024;

/** Reads the complete lines of a file from a byte offset, with their places. Memory stays at one chunk, or one longer line. */
export async function* readLines(path: string, from = 0): AsyncGenerator<Line> {
  for await (const lines of readBatches(path, from)) yield* lines;
}

/** Reads the lines in chunks, for reading millions of lines: a promise per line costs more than the line itself. */
export async function* readBatches(path: string, from = 0): AsyncGenerator<readonly Line[]> {
  let offset = from;
  let parts: Buffer[] = [];
  const chunks = createReadStream(path, { start: from, highWaterMark: CHUNK }) as AsyncIterable<Buffer>;
  for await (const chunk of chunks) {
    const lines: Line[] = [];
    let at = 0;
    for (let end = chunk.indexOf(NEWLINE, at); end !== -1; end = chunk.indexOf(NEWLINE, at)) {
      const rest = chunk.subarray(at, end);
      const bytes = parts.length === 0 ? rest : Buffer.concat([...parts, rest]);
      parts = [];
      lines.push({ offset, length: bytes.length, bytes });
      offset += bytes.length + 1;
      at = end + 1;
    }
    if (at < chunk.length) parts.push(chunk.subarray(at));
    if (lines.length > 0) yield lines;
  }
}
